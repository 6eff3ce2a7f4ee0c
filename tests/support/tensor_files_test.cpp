#include "support/tensor_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/safetensors.h"
#include "support/temporary_folder.h"
#include "support/value_of.h"

namespace underkeel::test {
namespace {

using testing::ElementsAre;

TEST(TensorFiles, ReadBackWhatTheyWrote) {
  const TemporaryFolder folder;
  const StoredTensors tensors = {{"a", stored(DType::bf16, {2, 2}, {1.0f, -2.0f, 0.5f, 3.0f})},
                                 {"b", stored({3}, std::vector<std::int32_t>{7, -100, 9})}};

  write_tensors(folder / "x.safetensors", tensors);
  const auto read = read_tensors(folder / "x.safetensors");

  EXPECT_THAT(read.at("a").shape, ElementsAre(2, 2));
  EXPECT_THAT(read.at("a").as_f32(), ElementsAre(1.0f, -2.0f, 0.5f, 3.0f));
  EXPECT_THAT(read.at("b").as_i32(), ElementsAre(7, -100, 9));
}

TEST(TensorFiles, AreAcceptedByTheStrictReader) {
  const TemporaryFolder folder;
  write_tensors(folder / "x.safetensors", {{"a", stored(DType::f16, {3}, {1, 2, 3})},
                                           {"b", stored(DType::f32, {2}, {4, 5})}});
  io::FileSystem files;

  const auto header = value_of(io::read_safetensors_header(files, folder / "x.safetensors"));

  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].type, DType::f16);
  EXPECT_EQ(header.tensors[1].end, header.file_size_bytes);
}

}  // namespace
}  // namespace underkeel::test
