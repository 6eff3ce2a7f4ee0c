#include "io/safetensors.h"

#include <array>
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/faults.h"
#include "io/temp_folder.h"
#include "support/places.h"

namespace underkeel::io {
namespace {

using ::testing::HasSubstr;

/// The bytes of a file with this header and so many bytes of data.
std::string file_with(std::string_view json, std::size_t data_size_bytes) {
  std::string bytes(8, '\0');
  const std::uint64_t length = json.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + std::string(json) + std::string(data_size_bytes, 'x');
}

Result<SafetensorsHeader> read(const std::string& file_bytes) {
  const TempFolder folder;
  FileSystem files;
  put(folder / "a.safetensors", file_bytes);
  return read_safetensors_header(files, folder / "a.safetensors");
}

TEST(SafetensorsHeader, GivesEntriesInByteOrderWithAbsoluteRanges) {
  const auto header =
      read(file_with(R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
                     R"("__metadata__":{"format":"pt"},)"
                     R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                     R"("c":{"dtype":"F8_E4M3","shape":[0,7],"data_offsets":[16,16]}}  )",
                     16))
          .value();

  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].element_count(), 1);
  EXPECT_EQ(header.tensors[0].begin, header.data_begin);
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].type, DType::bf16);
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[1].begin, header.data_begin + 4);
  EXPECT_EQ(header.tensors[1].end, header.file_size_bytes);
  EXPECT_EQ(header.tensors[2].type, std::nullopt);
  EXPECT_EQ(header.tensors[2].dtype_text, "F8_E4M3");
  EXPECT_EQ(header.tensors[2].size_bytes(), 0);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.find("b")->shape.size(), 2u);
  EXPECT_EQ(header.find("z"), nullptr);
}

struct Refused {
  const char* name;
  std::string header;
  std::size_t data_size_bytes;
  const char* what;
};
class RefusedHeader : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedHeader, NamesTheReason) {
  const auto header = read(file_with(GetParam().header, GetParam().data_size_bytes));

  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, ErrorCode::bad_file);
  EXPECT_THAT(header.error().what, HasSubstr(GetParam().what));
  EXPECT_THAT(header.error().where, HasSubstr("a.safetensors"));
}

std::string nested(int depth) {
  return R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":)" +
         std::string(depth, '[') + std::string(depth, ']') + "}}";
}
std::string one(std::string_view type, std::string_view shape, std::string_view offsets) {
  return R"({"a":{"dtype":)" + std::string(type) + R"(,"shape":)" + std::string(shape) +
         R"(,"data_offsets":)" + std::string(offsets) + "}}";
}

INSTANTIATE_TEST_SUITE_P(
    Safetensors, RefusedHeader,
    ::testing::Values(
        Refused{"Empty", "", 0, "does not start with `{`"},
        Refused{"Space", " {}", 0, "does not start with `{`"},
        Refused{"List", "[]", 0, "does not start with `{`"},
        Refused{"ByteOrderMark", "\xef\xbb\xbf{}", 0, "does not start with `{`"},
        Refused{"CutJson", R"({"a":{"dtype")", 4, "not JSON at byte"},
        Refused{"TrailingJson", "{}{}", 0, "not JSON at byte 3"},
        Refused{"ZeroByte", std::string("{}\0garbage", 10), 0, "not JSON at byte 3: a zero byte"},
        Refused{"NotUtf8", "{\"\xff\":1}", 0, "not JSON at byte"},
        Refused{"LoneSurrogate", R"({"\ud800":1})", 0, "not JSON at byte"},
        Refused{"Hole",
                R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                3, "hole of 1 bytes"},
        Refused{"HoleAtFront", one("\"U8\"", "[1]", "[1,2]"), 2, "hole of 1 bytes"},
        Refused{"Overlap",
                R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                3, "overlap of 1 bytes"},
        Refused{"SameRangeTwice",
                R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                2, "overlap of 2 bytes"},
        Refused{"EndBeforeBegin", one("\"U8\"", "[1]", "[2,1]"), 2, "ends at byte 1 before"},
        Refused{"WrongSize", one("\"F32\"", "[2,2]", "[0,15]"), 15,
                "covers 15 bytes; type F32 and shape [2, 2] need 16"},
        Refused{"ShapeOverflow", one("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0,
                "beyond any size"},
        // A product that wraps around to 0 must not pass for an empty tensor.
        Refused{"ShapeOverflowBeforeZero", one("\"U8\"", "[9223372036854775807,8,0]", "[0,0]"), 0,
                "beyond any size"},
        Refused{"HalfAByte", one("\"F4\"", "[3]", "[0,2]"), 2, "does not fill whole bytes"},
        Refused{"TrailingBytes", one("\"U8\"", "[1]", "[0,1]"), 2,
                "has bytes left over: 1 bytes of tensors expected, 2 found"},
        Refused{"Truncated", one("\"U8\"", "[5]", "[0,5]"), 3,
                "is short: 5 bytes of tensors expected, 3 found"},
        Refused{"DoubledName",
                R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                2, "the key `a` stands twice"},
        Refused{"DoubledEmptyName",
                R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                R"("\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                0, "the key `a` stands twice"},
        Refused{"DoubledMetadata", R"({"__metadata__":{},"__metadata__":{}})", 0,
                "the key `__metadata__` stands twice"},
        Refused{"DoubledKeyInEntry",
                R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
                "the key `dtype` stands twice"},
        Refused{"MetadataNumber", R"({"__metadata__":{"n":1}})", 0,
                "__metadata__ key `n` is not a text"},
        Refused{"MetadataList", R"({"__metadata__":{"n":[]}})", 0,
                "__metadata__ key `n` is not a text"},
        Refused{"MetadataObject", R"({"__metadata__":{"n":{}}})", 0,
                "__metadata__ key `n` is not a text"},
        Refused{"MetadataItselfAList", R"({"__metadata__":[]})", 0, "is not a JSON object"},
        Refused{"MetadataItselfNull", R"({"__metadata__":null})", 0, "is not a JSON object"},
        Refused{"UnknownType", one("\"F128\"", "[1]", "[0,16]"), 16, "an unknown type `F128`"},
        Refused{"EmptyType", one("\"\"", "[]", "[0,0]"), 0, "an unknown type ``"},
        Refused{"TypeNumber", one("7", "[1]", "[0,1]"), 1, "`dtype` is not a text"},
        Refused{"TypeObject", one("{}", "[1]", "[0,1]"), 1, "`dtype` is not a text"},
        Refused{"ShapeNumber", one("\"U8\"", "1", "[0,1]"), 1, "`shape` is not a list"},
        Refused{"ShapeObject", one("\"U8\"", "{}", "[0,1]"), 1, "`shape` is not a list of numbers"},
        Refused{"ShapeInShape", one("\"U8\"", "[[1]]", "[0,1]"), 1,
                "`shape` is not a list of numbers"},
        Refused{"NegativeSize", one("\"U8\"", "[-1]", "[0,1]"), 1, "`shape` holds something else"},
        Refused{"MinusZero", one("\"U8\"", "[-0]", "[0,0]"), 0, "`shape` holds something else"},
        Refused{"FractionalSize", one("\"U8\"", "[1.0]", "[0,1]"), 1,
                "`shape` holds something else"},
        Refused{"ExponentSize", one("\"U8\"", "[1e0]", "[0,1]"), 1, "`shape` holds something else"},
        Refused{"TextSize", one("\"U8\"", "[\"1\"]", "[0,1]"), 1, "`shape` holds something else"},
        Refused{"SizeAbove63Bits", one("\"U8\"", "[9223372036854775808]", "[0,1]"), 1,
                "`shape` holds something else"},
        Refused{"SizeAbove64Bits", one("\"U8\"", "[18446744073709551616]", "[0,1]"), 1,
                "`shape` holds something else"},
        Refused{"OneOffset", one("\"U8\"", "[1]", "[0]"), 1, "needs 2 numbers, found 1"},
        Refused{"ThreeOffsets", one("\"U8\"", "[1]", "[0,1,2]"), 1, "needs 2 numbers, found 3"},
        Refused{"NegativeOffset", one("\"U8\"", "[1]", "[-1,0]"), 1,
                "`data_offsets` holds something else"},
        Refused{"OffsetsNumber", one("\"U8\"", "[1]", "1"), 1, "`data_offsets` is not a list"},
        Refused{"NoType", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "has no `dtype`"},
        Refused{"NoShape", R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, "has no `shape`"},
        Refused{"NoOffsets", R"({"a":{"dtype":"U8","shape":[1]}})", 1, "needs 2 numbers, found 0"},
        Refused{"EntryNumber", R"({"a":1})", 0, "is not a JSON object"},
        Refused{"EntryList", R"({"a":[]})", 0, "is not a JSON object"},
        Refused{"DeepNesting", nested(20), 1, "nested deeper than 16 levels"},
        Refused{"VeryDeepNesting", nested(200'000), 1, "nested deeper than 16 levels"},
        Refused{"LongName", "{\"" + std::string(5000, 'n') + "\":1}", 0, "a name of 5000 bytes"},
        Refused{"ManyDimensions",
                one(
                    "\"U8\"",
                    "[1" +
                        []() {
                          std::string ones;
                          for (int i = 0; i < 64; ++i) ones += ",1";
                          return ones;
                        }() +
                        "]",
                    "[0,1]"),
                1, "more than 64 dimensions"}),
    [](const auto& tested) { return tested.param.name; });

TEST(SafetensorsHeader, AcceptsWhatTheFormatAllows) {
  EXPECT_TRUE(read(file_with("{}", 0)));
  EXPECT_TRUE(read(file_with(R"({"__metadata__":{}})", 0)));
  EXPECT_TRUE(read(file_with(one("\"F4\"", "[4]", "[0,2]"), 2)));
  EXPECT_TRUE(read(file_with(one("\"F6_E2M3\"", "[4]", "[0,3]"), 3)));
  EXPECT_TRUE(read(file_with(one("\"BOOL\"", "[3]", "[0,3]"), 3)));
  EXPECT_TRUE(read(file_with(nested(5), 1)));  // keys for other readers are passed over
}

TEST(SafetensorsHeader, RefusesAFileShorterThanItsLength) {
  EXPECT_THAT(read("").error().what, HasSubstr("file of 0 bytes"));
  EXPECT_THAT(read("1234567").error().what, HasSubstr("file of 7 bytes"));
  const std::string whole = file_with("{}", 0);
  EXPECT_THAT(read(whole.substr(0, 9)).error().what, HasSubstr("header of 2 bytes in a file of 9"));
}

TEST(SafetensorsHeader, RefusesAHugeLengthBeforeItTakesMemory) {
  std::string bytes(8, '\xff');
  EXPECT_THAT(read(bytes).error().what, HasSubstr("header of 18446744073709551615 bytes"));
  const std::uint64_t allowed = longest_safetensors_header_bytes;
  std::memcpy(bytes.data(), &allowed, 8);
  EXPECT_THAT(read(bytes).error().what, HasSubstr("header of 100,000,000 bytes in a file of 8"));
}

TEST(SafetensorsHeader, EscapesAHostileNameInItsMessage) {
  const auto header = read(file_with(R"({"\u001b[2Jhidden":1})", 0));

  EXPECT_THAT(header.error().where, HasSubstr("tensor \\x1b[2Jhidden"));
}

/// What tests/io/golden/make_reference_writer.py writes.
std::vector<TensorSpec> golden_specs() {
  return {
      {"model.layers.10.weight", DType::bf16, {2, 3}},
      {"model.layers.2.weight", DType::bf16, {3}},
      {"scalar", DType::f32, {}},
      {"empty", DType::f32, {0, 4}},
      {"ids", DType::i64, {2}},
      {"short ids", DType::i32, {3}},
      {"bytes", DType::u8, {5}},
      {"half", DType::f16, {1, 1, 2}},
      {"wide", DType::f64, {1}},
      {"na\xc3\xafve \"quoted\"\n", DType::f32, {1}},
  };
}

TEST(SafetensorsLayout, EqualsTheReferenceWriterByteForByte) {
  const std::string golden =
      content_of(test::in_source("tests/io/golden/reference_writer.safetensors"));
  const TempFolder folder;
  FileSystem files;

  const auto layout = lay_out_safetensors(golden_specs()).value();
  File file = create_safetensors(files, folder / "a", layout).value();
  for (const TensorEntry& tensor : layout.tensors) {
    std::vector<unsigned char> values(static_cast<std::size_t>(tensor.size_bytes()));
    std::iota(values.begin(), values.end(), static_cast<unsigned char>(0));
    ASSERT_TRUE(file.write(std::as_bytes(std::span(values)), tensor.begin));
  }

  ASSERT_FALSE(golden.empty());
  EXPECT_EQ(content_of(folder / "a"), golden);
}

TEST(SafetensorsLayout, IsReadBackByTheReader) {
  const TempFolder folder;
  FileSystem files;
  const auto layout =
      lay_out_safetensors(golden_specs(), {{"format", "pt"}, {"step", "4"}}).value();
  ASSERT_TRUE(create_safetensors(files, folder / "a", layout));

  const auto header = read_safetensors_header(files, folder / "a").value();

  ASSERT_EQ(header.tensors.size(), layout.tensors.size());
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    EXPECT_EQ(header.tensors[i].name, layout.tensors[i].name);
    EXPECT_EQ(header.tensors[i].type, layout.tensors[i].type);
    EXPECT_EQ(header.tensors[i].begin, layout.tensors[i].begin);
    EXPECT_EQ(header.tensors[i].end, layout.tensors[i].end);
  }
  EXPECT_EQ(header.metadata.at("step"), "4");
  EXPECT_EQ(header.data_begin % 8, 0);
  EXPECT_EQ(header.file_size_bytes, layout.file_size_bytes);
}

TEST(SafetensorsLayout, LetsSeveralWritersFillTheirRanges) {
  const TempFolder folder;
  FileSystem files;
  const auto layout = lay_out_safetensors({{"a", DType::u8, {4}}, {"b", DType::u8, {4}}}).value();
  ASSERT_TRUE(create_safetensors(files, folder / "a", layout));

  for (int rank = 3; rank >= 0; --rank) {
    File file = files.open_for_update(folder / "a").value();
    const std::array<std::byte, 2> values = {std::byte(rank), std::byte(rank)};
    ASSERT_TRUE(file.write(values, layout.tensors[0].begin + 2 * rank));
  }

  EXPECT_EQ(content_of(folder / "a").substr(layout.header.size()),
            std::string("\0\0\1\1\2\2\3\3", 8));
  EXPECT_TRUE(read_safetensors_header(files, folder / "a"));
}

TEST(SafetensorsLayout, RefusesWhatTheFormatCannotHold) {
  EXPECT_EQ(lay_out_safetensors({{"a", DType::nf4, {4}}}).error().code, ErrorCode::unsupported);
  EXPECT_THAT(lay_out_safetensors({{"a", DType::f32, {4}}, {"a", DType::u8, {4}}}).error().what,
              HasSubstr("two tensors of one name"));
  EXPECT_THAT(lay_out_safetensors({{"\xff", DType::f32, {4}}}).error().what,
              HasSubstr("is not UTF-8"));
}

TEST(SafetensorsLayout, FindsOutBeforeTheFirstByteThatTheDiskIsTooSmall) {
  const TempFolder folder;
  const auto layout = lay_out_safetensors({{"a", DType::f32, {1000}}}).value();
  FileSystem files(std::make_shared<FaultyCalls>(
      posix_calls(), parse_fault_rules("quota:bytes=4000,path=" + folder.path()).value()));

  const auto file = create_safetensors(files, folder / "a", layout);

  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().what, HasSubstr("bytes needed, 4,000 bytes free"));
}

}  // namespace
}  // namespace underkeel::io
