#include "io/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace underkeel::io {
namespace {

using ::testing::HasSubstr;

/// Two files; a tensor in two parts, one in one, an empty one.
Manifest small_manifest() {
  Manifest manifest;
  manifest.step = 400;
  manifest.plan_hash = "abc";
  manifest.state = R"({"epoch": 1.5, "text": "a\nb"})";
  manifest.files = {{"config.json", 12, 7}, {"state.safetensors", 200, std::nullopt}};
  manifest.tensors = {
      {"a", DType::f32, {2, 5}, "state.safetensors", 100, 140, {{100, 120, 1}, {120, 140, 2}}},
      {"b", DType::bf16, {30}, "state.safetensors", 140, 200, {{140, 200, ~0ull}}},
      {"c", DType::f32, {0, 5}, "state.safetensors", 140, 140, {}},
  };
  return manifest;
}

TEST(Manifest, IsReadBackFromItsText) {
  const Manifest written = small_manifest();

  const Manifest read = parse_manifest(to_json(written).value(), "manifest.json").value();

  EXPECT_EQ(read.step, 400);
  EXPECT_EQ(read.plan_hash, written.plan_hash);
  EXPECT_EQ(read.state, written.state);
  ASSERT_EQ(read.files.size(), 2u);
  EXPECT_EQ(read.files[0].xxh3_64, 7u);
  EXPECT_EQ(read.files[1].xxh3_64, std::nullopt);
  EXPECT_EQ(read.files[1].size_bytes, 200);
  ASSERT_EQ(read.tensors.size(), 3u);
  ASSERT_EQ(read.find("a")->parts.size(), 2u);
  EXPECT_EQ(read.find("a")->parts[1].begin, 120);
  EXPECT_EQ(read.find("a")->parts[1].xxh3_64, 2u);
  EXPECT_EQ(read.find("b")->parts[0].xxh3_64, ~0ull);
  EXPECT_EQ(read.find("b")->type, DType::bf16);
  EXPECT_EQ(read.find("c")->shape, (std::vector<std::int64_t>{0, 5}));
  EXPECT_EQ(read.find("d"), nullptr);
}

struct Broken {
  const char* name;
  void (*damage)(Manifest&);
  const char* what;
};
class BrokenManifest : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenManifest, IsRefusedWithTheReason) {
  Manifest manifest = small_manifest();
  GetParam().damage(manifest);

  const auto result = parse_manifest(to_json(manifest).value(), "manifest.json");

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::bad_file);
  EXPECT_THAT(result.error().what, HasSubstr(GetParam().what));
  EXPECT_THAT(result.error().where, HasSubstr("manifest.json"));
}

constexpr std::int64_t large = std::int64_t{1} << 62;

INSTANTIATE_TEST_SUITE_P(
    Manifest, BrokenManifest,
    ::testing::Values(
        Broken{"GapBetweenParts", [](Manifest& m) { m.tensors[0].parts[1].begin = 121; },
               "expected one that begins at 120"},
        Broken{"OverlappingParts", [](Manifest& m) { m.tensors[0].parts[1].begin = 119; },
               "expected one that begins at 120"},
        Broken{"EmptyPart", [](Manifest& m) { m.tensors[0].parts[0].end = 100; },
               "a part covers bytes 100 to 100"},
        Broken{"PartsTooShort", [](Manifest& m) { m.tensors[0].parts.pop_back(); },
               "parts end at byte 120, the tensor at 140"},
        Broken{"PartsTooLong", [](Manifest& m) { m.tensors[0].parts[1].end = 141; },
               "parts end at byte 141"},
        Broken{"PartBackwards", [](Manifest& m) { m.tensors[0].parts[1].end = 100; },
               "a part covers bytes 120 to 100"},
        Broken{"PartOfAnEmptyTensor",
               [](Manifest& m) {
                 m.tensors[2].parts = {{140, 141, 0}};
               },
               "parts end at byte 141"},
        Broken{"RangeOutsideTheFile", [](Manifest& m) { m.files[1].size_bytes = 199; },
               "bytes 140 to 200 of a file of 199 bytes"},
        Broken{"RangeFarOutsideTheFile",
               [](Manifest& m) {
                 m.tensors[0].begin = large;
                 m.tensors[0].end = large + 40;
               },
               "of a file of 200 bytes"},
        Broken{"EndBeforeBegin", [](Manifest& m) { m.tensors[0].end = 60; },
               "bytes 100 to 60 of a file"},
        Broken{"WrongSize",
               [](Manifest& m) {
                 m.tensors[0].shape = {2, 6};
               },
               "covers 40 bytes; its type and shape need 48"},
        Broken{"HugeShape",
               [](Manifest& m) {
                 m.tensors[0].shape = {large, large};
               },
               "shape beyond any size"},
        Broken{
            "OverlappingTensors",
            [](Manifest& m) {
              m.tensors[1] = {"b", DType::u8, {1}, "state.safetensors", 139, 140, {{139, 140, 0}}};
            },
            "the tensors `a` and `b` overlap"},
        Broken{"TensorTwice", [](Manifest& m) { m.tensors[1].name = "a"; },
               "the tensor `a` is listed twice"},
        Broken{"FileTwice", [](Manifest& m) { m.files[0].name = "state.safetensors"; },
               "listed twice"},
        Broken{"UnlistedFile", [](Manifest& m) { m.tensors[0].file = "other"; },
               "lies in `other`, which is not listed"},
        Broken{"FileOutside", [](Manifest& m) { m.files[0].name = "../config.json"; },
               "is not the name of a file in the checkpoint"},
        Broken{"FileIsTheManifest", [](Manifest& m) { m.files[0].name = "manifest.json"; },
               "is not the name of a file in the checkpoint"}),
    [](const auto& tested) { return tested.param.name; });

/// The text of a sound manifest with `from` replaced.
std::string edited(std::string_view from, std::string_view to) {
  std::string text = to_json(small_manifest()).value();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, RefusesATextOfAnotherKind) {
  const auto what = [](std::string_view from, std::string_view to) {
    const auto result = parse_manifest(edited(from, to), "m");
    return result ? "accepted" : result.error().what;
  };

  EXPECT_THAT(what("underkeel-checkpoint", "other"), HasSubstr("not an underkeel-checkpoint"));
  EXPECT_THAT(what("\"version\": 1", "\"version\": 2"), HasSubstr("checkpoint format 2"));
  EXPECT_THAT(what("\"version\"", "\"v\""), HasSubstr("has no version"));
  EXPECT_EQ(what("\"complete\": true", "\"complete\": false"), "the save was not completed");
  EXPECT_EQ(what("\"complete\": true", "\"complete\": 1"), "the save was not completed");
  EXPECT_THAT(what("\"step\": 400", "\"step\": -1"), HasSubstr("`step` is not a whole number"));
  EXPECT_THAT(what("\"step\": 400", "\"step\": 4.5"), HasSubstr("`step` is not a whole number"));
  EXPECT_THAT(what("\"step\"", "\"stop\""), HasSubstr("lacks one of step"));
  EXPECT_THAT(what("\"plan_hash\": \"abc\"", "\"plan_hash\": 7"), HasSubstr("is not a text"));
  EXPECT_THAT(what("\"files\": [", "\"files\": 7, \"f\": ["), HasSubstr("`files` is not a list"));
  EXPECT_THAT(what("\"files\"", "\"f\""), HasSubstr("lacks one of files"));
  EXPECT_THAT(what("\"tensors\"", "\"t\""), HasSubstr("lacks one of files, tensors"));
  EXPECT_THAT(what("\"size_bytes\": 12", "\"s\": 12"), HasSubstr("`files[0]` lacks"));
  EXPECT_THAT(what("{\"name\": \"config.json\"", "7, {\"name\": \"config.json\""),
              HasSubstr("`files[0]` is not an object"));
  EXPECT_THAT(what("\"dtype\": \"f32\"", "\"dtype\": \"f33\""), HasSubstr("not an element type"));
  EXPECT_THAT(what("\"dtype\": \"f32\"", "\"dtype\": 7"), HasSubstr("not an element type"));
  EXPECT_THAT(what("\"dtype\"", "\"d\""), HasSubstr("`tensors[0]` lacks"));
  EXPECT_THAT(what("[2, 5]", "[2, -5]"), HasSubstr("`tensors[0].shape[1]`"));
  EXPECT_THAT(what("[2, 5]", "[2, [5]]"), HasSubstr("is a list in a list"));
  EXPECT_THAT(what("[2, 5]", "[2, {}]"), HasSubstr("`tensors[0].shape[1]`"));
  EXPECT_THAT(what("[2, 5]", "10"), HasSubstr("`tensors[0].shape` is not a list"));
  EXPECT_THAT(what("[2, 5]", "{\"a\": 10}"), HasSubstr("`tensors[0]` lacks"));
  EXPECT_THAT(what("0000000000000001", "1"), HasSubstr("`tensors[0].parts[0].xxh3_64`"));
  EXPECT_THAT(what("\"begin\": 120, ", ""), HasSubstr("`tensors[0].parts[1]` lacks"));
  EXPECT_THAT(what("\"parts\": [", "\"parts\": [7, "), HasSubstr("`tensors[0].parts[0]`"));
  EXPECT_THAT(what("\"parts\": [", "\"parts\": [[], "), HasSubstr("is a list in a list"));
  EXPECT_THAT(what("\n}\n", "\n"), HasSubstr("not JSON at byte"));
  EXPECT_EQ(what("\"complete\": true", "\"complete\": true, \"of later versions\": [{}]"),
            "accepted");
  EXPECT_FALSE(parse_manifest("[]", "m"));
  EXPECT_FALSE(parse_manifest("7", "m"));
}

}  // namespace
}  // namespace underkeel::io
