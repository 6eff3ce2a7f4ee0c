#pragma once
// A native checkpoint as a run of bf16 weights with f32 master copies leaves it, with seeded values.

#include <filesystem>
#include <string>
#include <vector>

#include "base/random.h"
#include "comm/communicator.h"
#include "spec/model_spec.h"
#include "support/byte_tokenizer.h"
#include "support/model_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"
#include "train/checkpoint_files.h"
#include "train/checkpoint_writer.h"

namespace underkeel::test {

inline constexpr std::uint64_t made_seed = 5;

/// Master value of element `i` of parameter `stream`.
inline float made_value(std::uint32_t stream, std::int64_t i, float scale = 0.02f) {
  return scale * random_normal(made_seed, stream, static_cast<std::uint64_t>(i));
}

/// Writes output/checkpoint-`step` and gives its folder. Master values are made_value(); weights are
/// they, rounded; moments are ones. `scale` is that of the values.
inline std::string make_checkpoint(const std::filesystem::path& output, std::string_view model_json,
                                   std::int64_t step = 4, float scale = 0.02f) {
  const std::string config = complete_config(model_json);
  const spec::ModelSpec model = value_of(spec::parse_model_config(config, "config.json"));
  std::filesystem::create_directories(output / "made");
  write_byte_tokenizer(output / "made");
  io::FileSystem files;
  const auto control = comm::make_single();
  const auto layout = value_of(train::lay_out_checkpoint(
      model, {.weight_type = DType::bf16, .has_master = true}, train::default_shard_bytes));
  train::SaveRequest request{
      .output = output.string(), .step = step, .plan_hash = "plan", .state = "{}"};
  request.extra = {{"config.json", config},
                   {"tokenizer.json", read_text(output / "made" / "tokenizer.json")},
                   {"tokenizer_config.json", read_text(output / "made" / "tokenizer_config.json")}};
  std::filesystem::remove_all(output / "made");
  const auto writer =
      value_of(train::CheckpointWriter::begin(files, *control, layout, std::move(request)));
  std::uint32_t stream = 0;
  for (const spec::Parameter& parameter : spec::parameters_of(model)) {
    const std::int64_t count = parameter.element_count();
    const plan::UnitTensor tensor{
        .name = parameter.name, .shape = parameter.shape(), .element_count = count};
    std::vector<float> master(static_cast<std::size_t>(count));
    std::vector<BFloat16> weights(master.size());
    for (std::int64_t i = 0; i < count; ++i) {
      master[static_cast<std::size_t>(i)] = made_value(stream, i, scale);
      weights[static_cast<std::size_t>(i)] = to_bf16(master[static_cast<std::size_t>(i)]);
    }
    const std::vector<float> ones(master.size(), 1.0f);
    const auto write = [&](plan::StatePart part, DType type, const void* from) {
      value_of(writer->write(tensor, part, 0, count, type, from));
    };
    write(plan::StatePart::weights, DType::bf16, weights.data());
    write(plan::StatePart::master, DType::f32, master.data());
    write(plan::StatePart::moment1, DType::f32, ones.data());
    write(plan::StatePart::moment2, DType::f32, ones.data());
    ++stream;
  }
  value_of(writer->commit(*control));
  return io::checkpoint_path(output.string(), step);
}

}  // namespace underkeel::test
