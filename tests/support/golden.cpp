#include "support/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "support/places.h"
#include "support/text_files.h"

namespace underkeel::test {
namespace {

std::filesystem::path goldens() {
  return in_source("tests/goldens");
}

std::vector<std::string> folders_with(std::string_view file) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(goldens()))
    if (std::filesystem::exists(entry.path() / file))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

FlatBatch batch_of(const StoredTensors& tensors, const std::string& prefix) {
  return {.tokens = tensors.at(prefix + "tokens").as_i32(),
          .positions = tensors.at(prefix + "positions").as_i32(),
          .targets = tensors.at(prefix + "targets").as_i32(),
          .sequence_starts = tensors.at(prefix + "sequence_starts").as_i32()};
}

double number(const nlohmann::json& text) {
  return std::stod(text.get<std::string>());
}

std::vector<double> numbers(const nlohmann::json& texts) {
  std::vector<double> values;
  for (const auto& text : texts) values.push_back(number(text));
  return values;
}

void read_settings(const std::filesystem::path& folder, const nlohmann::json& settings,
                   CurveSettings& curve) {
  curve.steps = settings["steps"];
  curve.accumulation_steps = settings["accumulation"];
  curve.warmup_steps = settings["warmup_steps"];
  curve.learning_rate = settings["learning_rate"];
  curve.weight_decay = settings["weight_decay"];
  curve.max_grad_norm = settings["max_grad_norm"];
  curve.beta1 = settings["beta1"];
  curve.beta2 = settings["beta2"];
  curve.epsilon = settings["epsilon"];
  const auto batches = read_tensors(folder / "batches.safetensors");
  for (int i = 0; i < settings["micro_batches"].get<int>(); ++i)
    curve.batches.push_back(batch_of(batches, std::to_string(i) + "."));
}

}  // namespace

std::int64_t FlatBatch::trained_count() const {
  return std::count_if(targets.begin(), targets.end(), [](auto target) { return target >= 0; });
}

std::vector<std::string> golden_names() {
  return folders_with("batch.safetensors");
}
std::vector<std::string> golden_curve_names() {
  return folders_with("final.safetensors");
}

Golden read_golden(std::string_view name) {
  const auto folder = goldens() / name;
  const auto reference = nlohmann::json::parse(read_text(folder / "reference.json"));
  Golden golden{.folder = folder,
                .batch = batch_of(read_tensors(folder / "batch.safetensors"), ""),
                .loss = number(reference["loss"]),
                .gradient_norm = number(reference["gradient_norm"]),
                .gradients = read_tensors(folder / "gradients.safetensors"),
                .last_logits = read_tensors(folder / "logits.safetensors").at("last_logits")};
  for (const auto& spread : reference["spread"]) {
    golden.loss_spread = std::max(golden.loss_spread, spread["loss_relative"].get<double>());
    golden.gradient_spread =
        std::max(golden.gradient_spread, spread["gradient_relative"].get<double>());
  }
  return golden;
}

GoldenCurve read_golden_curve(std::string_view name) {
  GoldenCurve curve;
  curve.folder = goldens() / name;
  const auto reference = nlohmann::json::parse(read_text(curve.folder / "reference.json"));
  read_settings(curve.folder, reference["settings"], curve);
  curve.losses = numbers(reference["losses"]);
  curve.gradient_norms = numbers(reference["gradient_norms"]);
  curve.learning_rates = numbers(reference["learning_rates"]);
  curve.loss_spread = reference["spread"]["loss_relative"].get<std::vector<double>>();
  curve.final_weights = read_tensors(curve.folder / "final.safetensors");
  return curve;
}

GoldenBf16 read_golden_bf16() {
  GoldenBf16 golden;
  const auto folder = goldens() / "llama_bf16";
  const auto reference = nlohmann::json::parse(read_text(folder / "reference.json"));
  read_settings(folder, reference["settings"], golden);
  for (const auto& [name, runs] : reference["seeds"].items())
    golden.starts.push_back({.folder = folder / name,
                             .f32_losses = numbers(runs["float32"]["losses"]),
                             .bf16_losses = numbers(runs["bfloat16"]["losses"])});
  golden.loss_spread = reference["spread"]["loss_relative"].get<std::vector<double>>();
  return golden;
}

double relative_distance(const std::vector<float>& actual, const std::vector<float>& expected,
                         double floor) {
  if (actual.size() != expected.size()) throw std::runtime_error("tensors of different sizes");
  double apart = 0;
  double norm = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    apart += std::pow(double{actual[i]} - double{expected[i]}, 2);
    norm += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(apart) / std::max({std::sqrt(norm), floor, 1e-300});
}

}  // namespace underkeel::test
