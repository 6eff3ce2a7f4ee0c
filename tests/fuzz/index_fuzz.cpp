// Feeds the reader of model.safetensors.index.json with anything. What is accepted names only plain
// files, and our own index is among what is accepted.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "io/model_shards.h"
#include "io/weight_index.h"

using namespace underkeel;
using namespace underkeel::io;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto index = parse_weight_index({reinterpret_cast<const char*>(data), size}, "index.json");
  if (!index) return 0;
  std::vector<WeightShard> shards;
  for (const auto& [tensor, file] : index->file_of_tensor) {
    UK_CHECK(!file.empty() && file.find_first_of("/\\") == std::string::npos && file != "..",
             "a plain file name");
    shards.push_back({file, {{tensor, DType::f32, {1}}}});
  }
  if (shards.size() < 2) return 0;
  for (std::size_t i = 0; i < shards.size(); ++i) shards[i].file = "file" + std::to_string(i);
  const auto written = weight_index_json(shards);
  UK_CHECK(written.has_value(), "what was read can be written");
  const auto again = parse_weight_index(*written, "again");
  UK_CHECK(again && again->file_of_tensor.size() == shards.size(), "what was written can be read");
  UK_CHECK(again->total_size_bytes == 4 * std::ssize(shards), "the size is summed");
  return 0;
}
