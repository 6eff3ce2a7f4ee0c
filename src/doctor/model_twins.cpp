#include "doctor/model_twins.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace underkeel::doctor {
namespace {

/// Of windows the layers that have one and its length: "0", "28 x 4096".
std::string windows_text(const std::vector<std::int64_t>& windows) {
  const auto with =
      std::count_if(windows.begin(), windows.end(), [](std::int64_t window) { return window > 0; });
  return with == 0
             ? "0"
             : fmt::format("{} x {}", with, *std::max_element(windows.begin(), windows.end()));
}

std::string rope_text(const spec::Rope& rope) {
  constexpr std::string_view names[] = {"default", "linear", "dynamic", "llama3", "yarn"};
  return rope.type == spec::RopeType::plain
             ? std::string(names[0])
             : fmt::format("{} x {:g} ({:g}, {:g}, {:g}, {:g}, {})",
                           names[static_cast<std::size_t>(rope.type)], rope.factor,
                           rope.low_freq_factor, rope.high_freq_factor, rope.beta_fast,
                           rope.beta_slow, rope.original_max_position_embeddings);
}

}  // namespace

bool have_same_tensors(const spec::ModelSpec& one, const spec::ModelSpec& other) {
  const auto same = [](const spec::Parameter& a, const spec::Parameter& b) {
    return a.name == b.name && a.shape() == b.shape();
  };
  const auto of_one = spec::parameters_of(one), of_other = spec::parameters_of(other);
  return std::equal(of_one.begin(), of_one.end(), of_other.begin(), of_other.end(), same);
}

std::string differing_fields(const spec::ModelSpec& one, const spec::ModelSpec& other) {
  std::string text;
  const auto compare = [&](std::string_view key, const std::string& a, const std::string& b) {
    if (a != b) text += fmt::format("{}{} {} / {}", text.empty() ? "" : ", ", key, a, b);
  };
  const auto number = [](double value) { return fmt::format("{:g}", value); };
  const auto count = [](std::int64_t value) { return fmt::format("{}", value); };
  compare("architectures", one.architecture, other.architecture);
  // Heads of another width may make matrices of the same shape.
  compare("num_attention_heads", count(one.query_heads), count(other.query_heads));
  compare("num_key_value_heads", count(one.key_heads), count(other.key_heads));
  compare("head_dim", count(one.head_width), count(other.head_width));
  compare("rms_norm_eps", number(one.norm_epsilon), number(other.norm_epsilon));
  compare("tie_word_embeddings", one.tied_head ? "true" : "false",
          other.tied_head ? "true" : "false");
  compare("sliding_window", windows_text(one.windows), windows_text(other.windows));
  compare("rope_theta", number(one.rope.theta), number(other.rope.theta));
  compare("rope_scaling", rope_text(one.rope), rope_text(other.rope));
  compare("max_position_embeddings", count(one.max_position_embeddings),
          count(other.max_position_embeddings));
  compare("dtype", std::string(name_of(one.stored_type)), std::string(name_of(other.stored_type)));
  compare("eos_token_id", fmt::format("{}", fmt::join(one.end_token_ids, "+")),
          fmt::format("{}", fmt::join(other.end_token_ids, "+")));
  return text;
}

}  // namespace underkeel::doctor
