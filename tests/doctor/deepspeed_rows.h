#pragma once
// Rows that scripts/measure_deepspeed.py measured under real DeepSpeed, and what doctor foretells of the same settings.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "doctor/deepspeed_memory.h"
#include "doctor/shapes.h"
#include "spec/yaml_reader.h"
#include "support/places.h"

namespace underkeel::doctor {

using Json = nlohmann::json;

inline std::vector<Json> measured_rows(std::string_view file_name) {
  std::vector<Json> rows;
  std::ifstream file(test::in_source(fmt::format("bench/results/{}", file_name)));
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

inline DeepspeedSettings settings_of_row(const Json& row) {
  // The config that DeepSpeed was given, where the row has it.
  if (row.contains("config")) {
    const auto config = spec::read_yaml(row.at("config").dump(), "config");
    return settings_of(*config, {}, row.at("width"));
  }
  DeepspeedSettings settings;
  settings.stage = row.at("stage");
  const std::string offload = row.at("offload");
  if (offload != "none") settings.optimizer = Offload::cpu;
  if (offload == "both") settings.parameters = Offload::cpu;
  settings.reduce_bucket = row.at("bucket");
  settings.overlap_comm = row.at("overlap");
  settings.prefetch_bucket = row.value("prefetch", 5e7);
  settings.max_live = row.value("max_live", 1e9);
  settings.max_reuse_distance = row.value("reuse", 1e9);
  settings.param_persistence = row.value("persistence", 1e5);
  settings.sub_group = row.value("sub_group", 1e9);
  settings.pins_memory = false;
  return settings;
}

inline spec::ModelSpec model_of_row(const Json& row) {
  const std::int64_t width = row.at("width");
  return model_of({.vocabulary = row.at("vocabulary"),
                   .width = width,
                   .layers = row.at("layers"),
                   .feed_forward = row.value("feed_forward", width * 11 / 4),
                   .query_heads = row.value("query_heads", width / 64),
                   .key_heads = row.value("key_heads", width / 64),
                   .tied = row.value("tied", false)});
}

/// The forecast of a row: of one rank, alone on its node, without what a process and its context take.
struct Foretold {
  explicit Foretold(const Json& row)
      : model(model_of_row(row)),
        sizes(sizes_of(model)),
        settings(settings_of_row(row)),
        ranks(row.at("ranks")) {
    const ActivationQuestion question{.model = model,
                                      .sequences = row.value("sequences", 1.0),
                                      .tokens = row.at("tokens"),
                                      .recomputes = row.at("recompute"),
                                      .element_bytes = 2};
    forecast = deepspeed_memory({.sizes = sizes,
                                 .settings = settings,
                                 .ranks = static_cast<double>(ranks),
                                 .ranks_on_node = 1,
                                 .accumulation_steps = row.at("accumulation"),
                                 .activations = backward_activations(question),
                                 .evaluation = evaluation_peak(question),
                                 .evaluates = true,
                                 .has_process = false});
  }

  /// Most bytes of each term, where device and host are one memory: without what only another device needs, copies to a
  /// host that is not the device, and files.
  std::map<std::string, double> terms_of_one_memory(Phase phase) const {
    std::map<std::string, double> sums;
    for (const Space space : {Space::device, Space::host})
      for (const Term& term : forecast.at(phase, space)->terms) {
        const std::string_view name = term.name;
        // On one rank a gather is a view where the host is the device.
        if (ranks == 1 && (name == "live" || name == "persistent")) continue;
        // Nothing is page-locked there, so nothing is rounded up.
        if (name == rounding_term) continue;
        // Of set-up before the host holds what is kept there.
        if (name == "defragmented") continue;
        if (name == "set_up" && space == Space::device && settings.optimizer != Offload::none)
          continue;
        if (name == "model_per_rank" || name == "checkpoint_shard" || name == "weights_clone" ||
            name == "serialised" || name == "weights_transient")
          continue;
        sums[std::string(name)] += term.high_bytes;
      }
    return sums;
  }
  double total_of_one_memory(Phase phase) const {
    double sum = 0;
    for (const auto& [name, bytes] : terms_of_one_memory(phase)) sum += bytes;
    return sum;
  }

  spec::ModelSpec model;
  ModelSizes sizes;
  DeepspeedSettings settings;
  int ranks;
  Forecast forecast;
};

inline std::string name_of_row(const Json& row) {
  std::string name = row.contains("model") ? row.at("model").get<std::string>() + ", " : "";
  name += fmt::format("stage {}, ranks {}, offload {}", row.at("stage").get<int>(),
                      row.at("ranks").get<int>(), row.at("offload").get<std::string>());
  if (row.at("accumulation") != 1) name += ", accumulates";
  if (row.at("overlap") == true) name += ", overlaps";
  if (row.contains("model") && row.at("bucket") < 5e8) name += ", small bucket";
  if (row.value("saves", false)) name += ", saves";
  if (row.at("tokens") > 128)
    name += fmt::format(", {} x {} tokens", row.value("sequences", 1), row.at("tokens").get<int>());
  if (row.at("recompute") == true) name += ", recomputes";
  if (row.value("max_live", 1e9) < 1e9) name += ", small window";
  if (row.value("sub_group", 1e9) < 1e9) name += ", small sub-groups";
  return name;
}

inline double off_percent(double foretold, double measured) {
  return 100 * (foretold - measured) / measured;
}

constexpr Phase measured_phases[] = {Phase::load,      Phase::first_step, Phase::step,
                                     Phase::update,    Phase::evaluate,   Phase::save,
                                     Phase::after_save};

/// Holds every phase's peak, under `key` in units of `unit` bytes, and the run's against what is foretold: never under by more than
/// 2%, nor over by more than 5%. A phase that a row lacks is an error unless rows may lack some.
inline void expect_peaks_foretold(
    const std::vector<Json>& rows, std::string_view key, double unit, bool may_lack_phases,
    const std::function<double(const Foretold&, Phase)>& expected_bytes) {
  const bool prints = std::getenv("UNDERKEEL_PRINT_TABLE") != nullptr;
  for (const Json& row : rows) {
    const Foretold foretold(row);
    double run_measured = 0, run_expected = 0;
    std::string line = "| " + name_of_row(row);
    for (const Phase phase : measured_phases) {
      const std::string name(name_of(phase));
      if (may_lack_phases && !row.at("phases").contains(name)) {
        line += " | -";
        continue;
      }
      const double measured = row.at("phases").at(name).at(std::string(key));
      const double expected = expected_bytes(foretold, phase);
      const double off = off_percent(expected, measured);
      run_measured = std::max(run_measured, measured);
      run_expected = std::max(run_expected, expected);
      line += fmt::format(" | {:.2f} {:+.1f}%", measured / unit, off);
      EXPECT_GE(off, -2) << name_of_row(row) << ": " << name;
      EXPECT_LE(off, 5) << name_of_row(row) << ": " << name;
    }
    const double off = off_percent(run_expected, run_measured);
    EXPECT_GE(off, -2) << name_of_row(row);
    EXPECT_LE(off, 5) << name_of_row(row);
    if (prints) std::cout << line << fmt::format(" | {:+.1f}% |\n", off);
  }
}

}  // namespace underkeel::doctor
