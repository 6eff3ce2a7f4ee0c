#include "io/value_look.h"

#include <cmath>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "support/value_of.h"

namespace underkeel::io {
namespace {

/// A file of f32 tensors whose values are their positions; one of them may be spoilt.
class Values : public testing::Test {
 protected:
  SafetensorsHeader write(const std::string& name, std::int64_t count, std::int64_t spoilt = -1) {
    const std::string path = (folder_ / name).string();
    const auto layout =
        test::value_of(lay_out_safetensors({{.name = "a", .type = DType::f32, .shape = {count}},
                                            {.name = "b", .type = DType::f32, .shape = {64}}}));
    std::ofstream file(path, std::ios::binary);
    file << layout.header;
    for (const TensorEntry& entry : layout.tensors)
      for (std::int64_t i = 0; i < entry.element_count(); ++i) {
        const float value = entry.name == "a" && i == spoilt
                                ? std::numeric_limits<float>::infinity()
                                : static_cast<float>(i);
        file.write(reinterpret_cast<const char*>(&value), sizeof value);
      }
    file.close();
    return test::value_of(read_safetensors_header(files_, path));
  }

  test::TemporaryFolder folder_;
  FileSystem files_;
};

TEST_F(Values, AreAllReadWhereThatIsAllowed) {
  const SafetensorsHeader header = write("m.safetensors", 100'000, 77'777);

  const ValueLook seen = test::value_of(look_at_values(files_, {&header, 1}, all_bytes));

  ASSERT_TRUE(seen.first_not_finite);
  EXPECT_EQ(seen.first_not_finite->tensor, "a");
  EXPECT_EQ(seen.first_not_finite->element_index, 77'777);
  EXPECT_EQ(seen.tensors_not_finite, 1);
  EXPECT_EQ(seen.total_bytes, 400'000 + 256);
}

TEST_F(Values, OfALargeFileAreReadInPartAndFromEveryTensor) {
  const SafetensorsHeader header = write("m.safetensors", 1'000'000);

  const ValueLook seen = test::value_of(look_at_values(files_, {&header, 1}, 1'000'000));

  EXPECT_FALSE(seen.first_not_finite);
  EXPECT_FALSE(seen.is_whole());
  EXPECT_GT(seen.read_bytes, 800'000);
  EXPECT_LE(seen.read_bytes, 1'000'000 + 65'536);
  const SafetensorsHeader last = write("n.safetensors", 1'000'000, 999'999);
  EXPECT_TRUE(test::value_of(look_at_values(files_, {&last, 1}, 1'000'000)).first_not_finite)
      << "the last block is one of those that are read";
}

TEST_F(Values, OfTwoTensorsAreCompared) {
  const SafetensorsHeader a = write("a.safetensors", 50'000), b = write("b.safetensors", 50'000);
  const SafetensorsHeader c = write("c.safetensors", 50'000, 20'000);
  const auto like = [&](const SafetensorsHeader& one, const SafetensorsHeader& other,
                        std::int64_t most_bytes) {
    return test::value_of(compare_tensors(files_, {one.path, *one.find("a")},
                                          {other.path, *other.find("a")}, most_bytes));
  };

  EXPECT_TRUE(like(a, b, all_bytes).is_equal);
  EXPECT_TRUE(like(a, b, all_bytes).is_whole());
  EXPECT_FALSE(like(a, c, all_bytes).is_equal);
  EXPECT_FALSE(like(a, b, 70'000).is_whole());
  EXPECT_FALSE(test::value_of(compare_tensors(files_, {a.path, *a.find("a")},
                                              {a.path, *a.find("b")}, all_bytes))
                   .is_equal);
}

TEST_F(Values, OfManyTensorsAreReadWithinTwiceWhatIsAllowed) {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 200; ++i)
    tensors.push_back({.name = std::to_string(i), .type = DType::f32, .shape = {20'000}});
  const auto layout = test::value_of(lay_out_safetensors(tensors));
  const std::string path = (folder_ / "many.safetensors").string();
  std::ofstream(path, std::ios::binary) << layout.header << std::string(200 * 80'000, '\0');
  const auto header = test::value_of(read_safetensors_header(files_, path));

  for (const std::int64_t most_bytes : {100'000, 1'000'000, 4'000'000}) {
    const auto seen = test::value_of(look_at_values(files_, {&header, 1}, most_bytes));
    EXPECT_LE(seen.read_bytes, 2 * most_bytes);
    EXPECT_EQ(seen.read_bytes > 0, most_bytes > 200 * 4096);
  }
}

TEST(FirstNotFinite, FindsEveryNumberWithoutAFiniteValue) {
  const std::uint16_t halves[] = {0x7BFF, 0xFBFF, 0x7C00};  // the largest, its negative, infinity
  EXPECT_EQ(first_not_finite(DType::f16, std::as_bytes(std::span(halves))), 2);
  const std::uint16_t brains[] = {0x7F7F, 0xFFC0};
  EXPECT_EQ(first_not_finite(DType::bf16, std::as_bytes(std::span(brains))), 1);
  const double doubles[] = {1e308, -1e308, std::nan("")};
  EXPECT_EQ(first_not_finite(DType::f64, std::as_bytes(std::span(doubles))), 2);
  const float floats[] = {3e38f, -0.0f, 1e-45f};
  EXPECT_EQ(first_not_finite(DType::f32, std::as_bytes(std::span(floats))), -1);
}

}  // namespace
}  // namespace underkeel::io
