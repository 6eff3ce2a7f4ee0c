#include "io/verify_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/model_folder.h"

namespace underkeel::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<ExpectedTensor> expected_of(const std::vector<TensorSpec>& tensors) {
  std::vector<ExpectedTensor> expected;
  for (const TensorSpec& tensor : tensors) expected.push_back({tensor.name, tensor.shape});
  return expected;
}

const VerifyOptions tied_head = {.tied = {{"lm_head.weight", "model.embed_tokens.weight"}}};

FolderReport verify(const TempFolder& folder, const std::vector<TensorSpec>& expected,
                    const VerifyOptions& options = {}) {
  FileSystem files;
  return verify_folder(files, folder.path(), expected_of(expected), options).value();
}

TEST(VerifyFolder, FindsASoundFolderSoundAndCountsIt) {
  const TempFolder folder;
  FileSystem files;
  write_shards(files, folder.path(), split_into_shards(tiny_llama(), 80'000));

  const auto report = verify(folder, tiny_llama());

  EXPECT_TRUE(report.sound());
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_EQ(report.totals.file_count, 3);
  EXPECT_EQ(report.totals.tensor_count, 21);
  EXPECT_EQ(report.totals.tensor_bytes, 213'632);
  EXPECT_EQ(report.totals.parameters_expected, 106'816);
  EXPECT_EQ(report.totals.parameters_found, 106'816);
}

TEST(VerifyFolder, NamesTheFirstOfManyPlaceholdersAndTheTotals) {
  const TempFolder folder;
  FileSystem files;
  auto placeholders = tiny_llama();
  for (TensorSpec& tensor : placeholders) tensor.shape = {0};
  write_weights(files, folder / "model.safetensors", placeholders);

  const auto report = verify(folder, tiny_llama());

  ASSERT_THAT(report.problems, SizeIs(1));
  EXPECT_EQ(report.problems[0].what,
            "wrong shape: expected [256, 64], found [0]; 20 more tensors are wrong (106,816 "
            "parameters expected, 0 found)");
  EXPECT_EQ(report.problems[0].where,
            folder / "model.safetensors, tensor model.embed_tokens.weight");
  EXPECT_THAT(report.problems[0].fix, HasSubstr("not gathered"));
}

TEST(VerifyFolder, NamesTheOnlyEmptyTensor) {
  const TempFolder folder;
  FileSystem files;
  auto tensors = tiny_llama();
  tensors[0].shape = {0};
  write_weights(files, folder / "model.safetensors", tensors);

  const auto report = verify(folder, tiny_llama());

  ASSERT_THAT(report.problems, SizeIs(1));
  EXPECT_EQ(report.problems[0].what,
            "wrong shape: expected [256, 64], found [0] (106,816 parameters expected, 90,432 "
            "found)");
}

TEST(VerifyFolder, WarnsOfATiedHeadThatIsDoubled) {
  const TempFolder folder;
  FileSystem files;
  write_weights(files, folder / "model.safetensors", tiny_llama());
  // Buffers smaller than the tensor, so that more than one piece is compared.
  VerifyOptions options = tied_head;
  options.buffer_bytes = 1000;

  const auto report = verify(folder, tiny_llama(false), options);

  EXPECT_TRUE(report.sound());
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("`lm_head.weight` is a second copy of "
                                                     "`model.embed_tokens.weight`, 32,768 bytes")));
}

TEST(VerifyFolder, RefusesATiedHeadThatDiffersInItsLastByte) {
  const TempFolder folder;
  FileSystem files;
  write_weights(files, folder / "model.safetensors", tiny_llama());
  poke(files, folder / "model.safetensors", "lm_head.weight", 32'767, {std::byte{0x3d}});
  VerifyOptions options = tied_head;
  options.buffer_bytes = 1000;

  const auto report = verify(folder, tiny_llama(false), options);

  ASSERT_THAT(report.problems, SizeIs(1));
  EXPECT_EQ(report.problems[0].what,
            "`lm_head.weight` and `model.embed_tokens.weight` differ, though the model ties them");
}

TEST(VerifyFolder, AcceptsATiedModelWithoutItsHead) {
  const TempFolder folder;
  FileSystem files;
  write_weights(files, folder / "model.safetensors", tiny_llama(false));

  const auto report = verify(folder, tiny_llama(false), tied_head);

  EXPECT_TRUE(report.sound());
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(VerifyFolder, NamesMissingAndUnexpectedTensors) {
  const TempFolder folder;
  FileSystem files;
  auto tensors = tiny_llama(false);
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", DType::bf16, {64}});
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", DType::f32, {8}});
  write_weights(files, folder / "model.safetensors", tensors);

  const auto report = verify(folder, tiny_llama());

  ASSERT_THAT(report.problems, SizeIs(2));
  EXPECT_EQ(report.problems[0].what, "missing: 1 tensor (`lm_head.weight`)");
  EXPECT_EQ(report.problems[1].what,
            "not part of this model: 1 tensor (`model.layers.0.self_attn.q_proj.bias`)");
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("rotary_emb.inv_freq")));
}

TEST(VerifyFolder, RecognisesNamesWithoutTheirPrefix) {
  const TempFolder folder;
  FileSystem files;
  auto tensors = tiny_llama(false);
  for (TensorSpec& tensor : tensors) tensor.name = tensor.name.substr(6);
  write_weights(files, folder / "model.safetensors", tensors);

  const auto report = verify(folder, tiny_llama(false));

  ASSERT_THAT(report.problems, SizeIs(2));
  EXPECT_THAT(report.problems[0].fix, HasSubstr("lack the prefix `model.`"));
}

TEST(VerifyFolder, NamesAValueThatIsNotFinite) {
  for (const auto& [type, bytes] : std::vector<std::pair<DType, std::vector<std::byte>>>{
           {DType::bf16, {std::byte{0xc0}, std::byte{0x7f}}},
           {DType::f16, {std::byte{0x00}, std::byte{0xfc}}},
           {DType::f32, {std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x7f}}}}) {
    const TempFolder folder;
    FileSystem files;
    write_weights(files, folder / "model.safetensors", tiny_llama(true, type));
    poke(files, folder / "model.safetensors", "model.layers.1.mlp.up_proj.weight",
         5'000 * std::ssize(bytes), bytes);
    VerifyOptions options;
    options.buffer_bytes = 1000;

    const auto report = verify(folder, tiny_llama(), options);

    ASSERT_THAT(report.problems, SizeIs(1)) << name_of(type);
    EXPECT_EQ(report.problems[0].code, ErrorCode::not_finite);
    EXPECT_EQ(report.problems[0].what, "element 5,000 is not a finite number");
    EXPECT_THAT(report.problems[0].where, HasSubstr("model.layers.1.mlp.up_proj.weight"));
    options.read_values = false;
    EXPECT_TRUE(verify(folder, tiny_llama(), options).sound());
  }
}

TEST(VerifyFolder, NamesATypeThatCannotBeRead) {
  const TempFolder folder;
  put(folder / "model.safetensors",
      std::string("\x40\0\0\0\0\0\0\0", 8) +
          R"({"x":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}      )" + "1234");

  const auto report = verify(folder, {{"x", DType::u8, {4}}});

  ASSERT_THAT(report.problems, SizeIs(1));
  EXPECT_EQ(report.problems[0].code, ErrorCode::unsupported);
  EXPECT_EQ(report.problems[0].what, "type F8_E4M3 cannot be read");
}

}  // namespace
}  // namespace underkeel::io
