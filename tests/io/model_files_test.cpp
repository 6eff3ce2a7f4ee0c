#include "io/model_files.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/model_folder.h"
#include "io/model_shards.h"

namespace underkeel::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<WeightShard> three_shards() {
  return split_into_shards(tiny_llama(), 80'000);
}

std::string index_path(const TempFolder& folder) {
  return folder / "model.safetensors.index.json";
}

TEST(ModelFiles, FindsEveryTensorOfASingleFile) {
  const TempFolder folder;
  FileSystem files;
  write_weights(files, folder / "model.safetensors", tiny_llama());

  const auto model = open_model_files(files, folder.path()).value();

  EXPECT_EQ(model.places.size(), 21u);
  const auto found = model.find("model.norm.weight");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, folder / "model.safetensors");
  EXPECT_EQ(found->entry.shape, std::vector<std::int64_t>{64});
  EXPECT_FALSE(model.find("model.norm"));
}

TEST(ModelFiles, FindsEveryTensorOfThreeShards) {
  const TempFolder folder;
  FileSystem files;
  write_shards(files, folder.path(), three_shards());

  const auto scan = scan_model_folder(files, folder.path()).value();

  EXPECT_THAT(scan.problems, IsEmpty());
  EXPECT_THAT(scan.warnings, IsEmpty());
  EXPECT_THAT(scan.model.files, SizeIs(3));
  EXPECT_EQ(scan.model.places.size(), 21u);
  EXPECT_EQ(scan.model.find("lm_head.weight")->path, folder / "model-00003-of-00003.safetensors");
}

TEST(ModelFiles, FollowsLinksAsInTheHubCache) {
  const TempFolder folder;
  FileSystem files;
  std::filesystem::create_directories(folder / "blobs");
  std::filesystem::create_directories(folder / "snapshot");
  write_weights(files, folder / "blobs/0123", tiny_llama());
  std::filesystem::create_symlink("../blobs/0123", folder / "snapshot/model.safetensors");

  EXPECT_TRUE(open_model_files(files, folder / "snapshot"));
}

TEST(ModelFiles, SaysHowToConvertAPickle) {
  const TempFolder folder;
  FileSystem files;
  put(folder / "pytorch_model.bin", "x");

  const auto model = open_model_files(files, folder.path());

  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::unsupported);
  EXPECT_THAT(model.error().what, HasSubstr("pytorch_model.bin"));
  EXPECT_THAT(model.error().fix, HasSubstr("save_pretrained('" + folder.path() + "')"));
}

TEST(ModelFiles, SaysWhatAFolderWithoutWeightsShouldHold) {
  const TempFolder folder;
  FileSystem files;

  EXPECT_EQ(open_model_files(files, folder / "nowhere").error().what, "no such model folder");
  EXPECT_EQ(open_model_files(files, folder.path()).error().what, "no weights in the folder");
}

TEST(ModelFiles, RefusesAdaptersBesideWeightsAndInsteadOfThem) {
  FileSystem files;
  for (const char* name : {"adapter_model.safetensors", "adapter_model.bin", "adapter_config.json"})
    for (const bool has_weights : {true, false}) {
      SCOPED_TRACE(std::string(name) + (has_weights ? " beside weights" : " alone"));
      const TempFolder folder;
      if (has_weights) write_weights(files, folder / "model.safetensors", tiny_llama());
      ASSERT_TRUE(refuse_adapters(files, folder.path()));
      put(folder / name, "{}");

      const auto model = open_model_files(files, folder.path());

      ASSERT_FALSE(model);
      EXPECT_EQ(model.error().code, ErrorCode::unsupported);
      EXPECT_THAT(model.error().what, HasSubstr("holds adapters (`" + std::string(name) + "`)"));
      EXPECT_THAT(model.error().fix, HasSubstr("PEFT"));
      const auto scan = scan_model_folder(files, folder.path());
      if (has_weights)
        EXPECT_THAT(scan.value().all_warnings(), ::testing::Contains(HasSubstr(name)));
      else
        EXPECT_EQ(scan.error().what, model.error().what);
    }
}

TEST(ModelFiles, NamesAMissingShardAndWhatItShouldHold) {
  const TempFolder folder;
  FileSystem files;
  write_shards(files, folder.path(), three_shards());
  std::filesystem::remove(folder / "model-00003-of-00003.safetensors");

  const auto scan = scan_model_folder(files, folder.path()).value();

  ASSERT_THAT(scan.problems, SizeIs(1));
  EXPECT_EQ(scan.problems[0].code, ErrorCode::not_found);
  EXPECT_EQ(scan.problems[0].where, folder / "model-00003-of-00003.safetensors");
  EXPECT_THAT(scan.problems[0].what, HasSubstr("`lm_head.weight`"));
}

TEST(ModelFiles, NamesTheFileAndTheEntryOfAnEmptyHeaderEntry) {
  const TempFolder folder;
  FileSystem files;
  write_weights(files, folder / "model-00001-of-00002.safetensors", tiny_llama(false));
  const std::string second = folder / "model-00002-of-00002.safetensors";
  put(second, std::string("\x41\0\0\0\0\0\0\0", 8) +
                  R"({"lm_head.weight":{"dtype":"","shape":[],"data_offsets":[0,0]}}  )");
  put(index_path(folder), R"({"weight_map":{"lm_head.weight":"model-00002-of-00002.safetensors",)"
                          R"("model.norm.weight":"model-00001-of-00002.safetensors"}})");

  const auto model = open_model_files(files, folder.path());

  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().where, second + ", tensor lm_head.weight");
  EXPECT_THAT(model.error().what, HasSubstr("unknown type ``"));
}

TEST(ModelFiles, NamesTensorsThatTheIndexPromisesAndTheFileLacks) {
  const TempFolder folder;
  FileSystem files;
  write_weights(files, folder / "a.safetensors", {{"x", DType::f32, {2}}});
  write_weights(files, folder / "b.safetensors", {{"y", DType::f32, {2}}});
  put(index_path(folder), R"({"metadata":{"total_size":16},"weight_map":)"
                          R"({"x":"a.safetensors","y":"a.safetensors","z":"b.safetensors"}})");

  const auto scan = scan_model_folder(files, folder.path()).value();

  ASSERT_THAT(scan.problems, SizeIs(2));
  EXPECT_EQ(scan.problems[0].where, folder / "a.safetensors");
  EXPECT_EQ(scan.problems[0].what, "the index says that this file holds 1 tensor (`y`); found in " +
                                       (folder / "b.safetensors"));
  EXPECT_EQ(scan.problems[1].where, folder / "b.safetensors");
  EXPECT_EQ(scan.problems[1].what, "the file lacks what the index names in it: 1 tensor (`z`)");
  EXPECT_EQ(open_model_files(files, folder.path()).error().what,
            scan.problems[0].what + " (and 1 more problems)");
}

TEST(ModelFiles, NamesTensorsThatTheIndexDoesNotName) {
  const TempFolder folder;
  FileSystem files;
  write_weights(files, folder / "a.safetensors", {{"x", DType::f32, {2}}, {"y", DType::f32, {2}}});
  put(index_path(folder), R"({"weight_map":{"x":"a.safetensors"}})");

  const auto scan = scan_model_folder(files, folder.path()).value();

  ASSERT_THAT(scan.problems, SizeIs(1));
  EXPECT_EQ(scan.problems[0].what,
            "the index does not name all that the files hold: 1 tensor (`y`)");
}

TEST(ModelFiles, NamesATensorThatStandsInTwoFiles) {
  const TempFolder folder;
  FileSystem files;
  write_weights(files, folder / "a.safetensors", {{"x", DType::f32, {2}}});
  write_weights(files, folder / "b.safetensors", {{"x", DType::f32, {2}}, {"y", DType::f32, {2}}});
  put(index_path(folder), R"({"weight_map":{"x":"a.safetensors","y":"b.safetensors"}})");

  const auto scan = scan_model_folder(files, folder.path()).value();

  ASSERT_THAT(scan.problems, SizeIs(1));
  EXPECT_EQ(scan.problems[0].what, "also in " + (folder / "a.safetensors") + ": 1 tensor (`x`)");
  EXPECT_EQ(scan.problems[0].where, folder / "b.safetensors");
}

TEST(ModelFiles, WarnsOfWhatIsOddAndHarmless) {
  const TempFolder folder;
  FileSystem files;
  write_shards(files, folder.path(), three_shards());
  write_weights(files, folder / "model-00001-of-00002.safetensors", {{"x", DType::f32, {2}}});
  std::string index = content_of(index_path(folder));
  index.replace(index.find("213632"), 6, "999999");
  put(index_path(folder), index);

  const auto sharded = scan_model_folder(files, folder.path()).value();
  put(folder / "model.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  const auto single = scan_model_folder(files, folder.path()).value();

  EXPECT_THAT(sharded.problems, IsEmpty());
  EXPECT_THAT(sharded.warnings,
              ElementsAre(HasSubstr("total_size is 999,999, the files hold 213,632 bytes"),
                          HasSubstr("model-00001-of-00002.safetensors belongs to no index")));
  EXPECT_THAT(single.warnings[0], HasSubstr("model.safetensors.index.json is not used"));
  EXPECT_THAT(single.warnings[1], HasSubstr("holds no tensor"));
  EXPECT_THAT(single.warnings[2], HasSubstr("names no `format`"));
}

TEST(WeightIndex, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../a.safetensors", "/etc/passwd", "sub/a.safetensors", "..", ".", "",
                           "a\\\\b.safetensors", "a\\u0000.safetensors"}) {
    const auto index =
        parse_weight_index(std::string(R"({"weight_map":{"x":")") + name + "\"}}", "index.json");
    ASSERT_FALSE(index) << name;
    EXPECT_EQ(index.error().where, "index.json, tensor x");
  }
  EXPECT_FALSE(
      parse_weight_index(R"({"weight_map":{"x":")" + std::string(256, 'a') + "\"}}", "index.json"));
}

TEST(WeightIndex, RefusesWhatIsNotAnIndex) {
  for (const char* text : {"", "[]", "7", "{}", R"({"weight_map":[]})", R"({"weight_map":7})",
                           R"({"weight_map":{"x":1}})", R"({"weight_map":{"x":{}}})",
                           R"({"weight_map":{"x":[]}})", R"({"weight_map":{"x":"a","x":"a"}})",
                           R"({"weight_map":{},"weight_map":{}})", R"({"weight_map":{"x":"a"})"})
    EXPECT_FALSE(parse_weight_index(text, "index.json")) << text;
}

TEST(WeightIndex, MayBeginWithAByteOrderMark) {
  const auto index = parse_weight_index(
      "\xEF\xBB\xBF"
      R"({"weight_map": {"a": "b.safetensors"}})",
      "index.json");

  ASSERT_TRUE(index) << to_text(index.error());
}

TEST(WeightIndex, TakesATotalSizeInAnySpellingOrNone) {
  const auto total = [](std::string_view size) {
    return parse_weight_index(
               R"({"metadata":{"total_size":)" + std::string(size) + R"(},"weight_map":{}})", "i")
        .value()
        .total_size_bytes;
  };

  EXPECT_EQ(total("16000000000"), 16'000'000'000);
  EXPECT_EQ(total("1.6e10"), 16'000'000'000);
  EXPECT_EQ(total("-1"), std::nullopt);
  EXPECT_EQ(total("1e300"), std::nullopt);
  EXPECT_EQ(total("18446744073709551615"), std::nullopt);
  EXPECT_EQ(total("\"5GB\""), std::nullopt);
}

std::vector<TensorSpec> sizes(std::initializer_list<std::int64_t> sizes_bytes) {
  std::vector<TensorSpec> tensors;
  for (const std::int64_t size : sizes_bytes)
    tensors.push_back({"t" + std::to_string(tensors.size()), DType::u8, {size}});
  return tensors;
}

TEST(Shards, AreCutInStateDictOrderAndALargeTensorGetsItsOwn) {
  const auto shards = split_into_shards(sizes({6, 6, 2, 20, 2, 6}), 10);

  const auto names = [](const WeightShard& shard) {
    std::string text;
    for (const TensorSpec& tensor : shard.tensors) text += tensor.name;
    return text;
  };
  ASSERT_THAT(shards, SizeIs(4));
  EXPECT_EQ(names(shards[0]), "t0");
  EXPECT_EQ(names(shards[1]), "t3");
  EXPECT_EQ(names(shards[2]), "t1t2t4");
  EXPECT_EQ(names(shards[3]), "t5");
  EXPECT_EQ(shards[0].file, "model-00001-of-00004.safetensors");
}

TEST(Shards, OfOneFileHaveNoIndex) {
  const auto shards = split_into_shards(sizes({6, 4}), 10);

  ASSERT_THAT(shards, SizeIs(1));
  EXPECT_EQ(shards[0].file, "model.safetensors");
  EXPECT_EQ(weight_index_json(shards).value(), "");
}

TEST(Shards, HaveAnIndexThatListsExactlyTheirTensors) {
  const auto shards = split_into_shards(sizes({6, 6}), 10);

  EXPECT_EQ(weight_index_json(shards).value(),
            R"({
  "metadata": {
    "total_parameters": 12,
    "total_size": 12
  },
  "weight_map": {
    "t0": "model-00001-of-00002.safetensors",
    "t1": "model-00002-of-00002.safetensors"
  }
}
)");
}

TEST(Shards, ReplaceTheFilesOfAnEarlierExport) {
  const TempFolder folder;
  FileSystem files;
  write_shards(files, folder.path(), three_shards());
  put(folder / "config.json", "{}");
  put(folder / "model-notes.safetensors", "");
  const auto single = split_into_shards(tiny_llama(), 1'000'000);

  ASSERT_TRUE(remove_stale_weights(files, folder.path(), single));

  const auto entries = files.list(folder.path()).value();
  std::vector<std::string> left;
  for (const FolderEntry& entry : entries) left.push_back(entry.name);
  EXPECT_THAT(left, ElementsAre("config.json", "model-notes.safetensors"));
}

}  // namespace
}  // namespace underkeel::io
