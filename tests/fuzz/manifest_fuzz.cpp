// Feeds the readers of a checkpoint's manifest and of a rank's part list with anything. What is
// accepted keeps its ranges inside its files and survives writing and reading.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "io/manifest.h"
#include "io/part_list.h"

using namespace underkeel;
using namespace underkeel::io;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto manifest = parse_manifest(text, "manifest.json")) {
    for (const CheckpointTensor& tensor : manifest->tensors) {
      UK_CHECK(0 <= tensor.begin && tensor.begin <= tensor.end, "a range runs forward");
      std::int64_t covered = 0;
      for (const FilePart& part : tensor.parts) covered += part.end - part.begin;
      UK_CHECK(covered == tensor.end - tensor.begin, "parts cover the tensor");
    }
    const auto json = to_json(*manifest);
    UK_CHECK(json.has_value(), "what was read can be written");
    const auto again = parse_manifest(*json, "again");
    UK_CHECK(again && to_json(*again).value() == *json, "what was written can be read");

    RankParts all;
    for (const CheckpointTensor& tensor : manifest->tensors)
      for (const FilePart& part : tensor.parts) all.entries.push_back({tensor.name, part});
    UK_CHECK(merge_parts(*manifest, std::span(&all, 1)), "its own parts cover a manifest");
  }
  if (const auto parts = parse_rank_parts(text, "rank")) {
    const auto json = to_json(*parts);
    UK_CHECK(json && parse_rank_parts(*json, "again"), "what was written can be read");
  }
  return 0;
}
