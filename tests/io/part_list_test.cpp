#include "io/part_list.h"

#include <gtest/gtest.h>

namespace underkeel::io {
namespace {

/// A tensor of two ranks, one of a single rank, an empty one.
Manifest two_part_manifest() {
  Manifest manifest;
  manifest.files = {{"state.safetensors", 200, std::nullopt}};
  manifest.tensors = {
      {"a", DType::f32, {2, 5}, "state.safetensors", 100, 140, {}},
      {"b", DType::bf16, {30}, "state.safetensors", 140, 200, {}},
      {"c", DType::f32, {0, 5}, "state.safetensors", 140, 140, {}},
  };
  return manifest;
}

std::vector<RankParts> two_ranks() {
  return {{0, {{"a", {100, 120, 1}}, {"b", {140, 140, 0}}}},
          {1, {{"b", {140, 200, 3}}, {"a", {120, 140, 2}}, {"c", {140, 140, 0}}}}};
}

TEST(RankParts, AreSentAsTextAndMergedIntoTheManifest) {
  Manifest manifest = two_part_manifest();
  std::vector<RankParts> received;
  for (const RankParts& parts : two_ranks())
    received.push_back(parse_rank_parts(to_json(parts).value(), "rank").value());

  ASSERT_TRUE(merge_parts(manifest, received));

  EXPECT_EQ(received[1].rank, 1);
  EXPECT_EQ(manifest.find("a")->parts.size(), 2u);
  EXPECT_EQ(manifest.find("a")->parts[0].xxh3_64, 1u);
  EXPECT_EQ(manifest.find("b")->parts.size(), 1u);
  EXPECT_TRUE(manifest.find("c")->parts.empty());
  EXPECT_TRUE(check_manifest(manifest, "m"));
}

TEST(RankParts, ThatLeaveAHoleOrOverlapNameTheBytes) {
  Manifest manifest = two_part_manifest();

  auto ranks = two_ranks();
  ranks[1].entries.pop_back();
  ranks[1].entries.pop_back();
  auto result = merge_parts(manifest, ranks);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "bytes 120 to 140 were written by no rank");
  EXPECT_EQ(result.error().where, "state.safetensors, tensor a");

  ranks = two_ranks();
  ranks[1].entries[1].part.begin = 110;
  EXPECT_EQ(merge_parts(manifest, ranks).error().what, "bytes 110 to 120 were written twice");

  ranks = two_ranks();
  ranks[0].entries[0].part.begin = 104;
  EXPECT_EQ(merge_parts(manifest, ranks).error().what, "bytes 100 to 104 were written by no rank");

  ranks = two_ranks();
  ranks[0].entries[0].tensor = "z";
  EXPECT_EQ(merge_parts(manifest, ranks).error().what,
            "rank 0 wrote a tensor that is not part of the save");
}

TEST(RankParts, RefuseATextOfAnotherKind) {
  for (const char* text :
       {"", "[]", "{}", R"({"rank": 0})", R"({"parts": []})", R"({"rank": -1, "parts": []})",
        R"({"rank": 0, "parts": [{}]})", R"({"rank": 0, "parts": [{"tensor": "a"}]})",
        R"({"rank": 0, "parts": [{"begin": 0, "end": 1, "xxh3_64": "0000000000000000"}]})",
        R"({"rank": 0, "parts": [{"tensor": "a", "begin": 0, "end": 1, "xxh3_64": "0"}]})"})
    EXPECT_FALSE(parse_rank_parts(text, "rank 1")) << text;
}

}  // namespace
}  // namespace underkeel::io
