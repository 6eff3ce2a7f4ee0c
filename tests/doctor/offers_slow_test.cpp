// What doctor offers is taken when it is given back: by the engine that it was offered for, with the figures that it had.

#include <cmath>

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/own_need.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

const Forecast& forecast_of(const Diagnosis& diagnosis, Engine engine) {
  return engine == Engine::deepspeed ? diagnosis.deepspeed : diagnosis.underkeel;
}

/// What a run holds at most in a space, in all phases that a fresh start has.
double most_of(const Forecast& forecast, Space space) {
  double most = 0;
  for (std::size_t p = 0; p < phase_count; ++p)
    if (static_cast<Phase>(p) != Phase::resume)
      if (const auto& holding = forecast.at(static_cast<Phase>(p), space))
        most = std::max(most, holding->high_without(rounding_term));
  return most;
}

struct Given {
  std::string_view name;
  Shape shape;
  std::string config;  // whole; empty: none
  std::string run;     // empty: none
  std::string machine;
};

constexpr std::string_view autos =
    R"("train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
       "train_batch_size": "auto", "bf16": {"enabled": true})";
constexpr std::string_view fixed =
    R"("train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
       "bf16": {"enabled": true})";

std::string config_of(std::string_view batch, std::string_view zero) {
  return fmt::format(R"({{{}, "zero_optimization": {}}})", batch, zero);
}
std::string run_of(std::string_view more) {
  return "stage: sft\ndo_train: true\ndataset: data\nbf16: true\nlearning_rate: 1.0e-4\n"
         "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n" +
         std::string(more);
}
std::string machine_of(int nodes, int gpus, double gpu_gib, double host_gib,
                       std::string_view more = "") {
  return fmt::format(
      R"({{"nodes": {}, "gpus_per_node": {}, "gpu_mem_gib": {}, "host_ram_gib": {}{}}})", nodes,
      gpus, gpu_gib, host_gib, more);
}

std::vector<Given> all_given() {
  const std::string full = run_of("finetuning_type: full\ncutoff_len: 1024\n");
  const std::string plain =
      run_of("finetuning_type: full\ncutoff_len: 1024\ndisable_gradient_checkpointing: true\n");
  const std::string lora = run_of("finetuning_type: lora\nlora_rank: 8\ncutoff_len: 1024\n");
  return {
      {"stage 0", llama_7b, config_of(autos, R"({"stage": 0})"), full, machine_of(1, 8, 40, 512)},
      {"stage 2, sizes fixed", llama_7b, config_of(fixed, R"({"stage": 2})"), full,
       machine_of(1, 4, 40, 512)},
      {"a switch", llama_7b, config_of(autos, "true"), full, machine_of(1, 4, 40, 512)},
      {"a truth value", llama_7b, config_of(autos, R"({"stage": true})"), full,
       machine_of(1, 4, 40, 512)},
      {"no overlap at stage 1", llama_8b,
       config_of(autos, R"({"stage": 1, "overlap_comm": false, "reduce_bucket_size": 2e8})"), plain,
       machine_of(2, 4, 40, 512)},
      {"old offload", llama_13b, config_of(autos, R"({"stage": 2, "cpu_offload": true})"), full,
       machine_of(1, 2, 40, 384)},
      {"offload at stage 3", llama_33b,
       config_of(autos, R"({"stage": 3, "offload_optimizer": {"device": "cpu"},
                            "offload_param": {"device": "cpu"}})"),
       full, machine_of(1, 8, 40, 559, R"(, "swap_free_gib": 1024)")},
      {"without a config", llama_7b, "", full, machine_of(1, 4, 40, 512)},
      {"without a run file", llama_7b, config_of(fixed, R"({"stage": 2})"), "",
       machine_of(1, 4, 40, 512)},
      {"without recomputation", qwen_14b,
       config_of(autos, R"({"stage": 2, "offload_optimizer": {"device": "cpu"}})"), plain,
       machine_of(1, 4, 40, 512)},
      {"adapters", llama_70b, config_of(autos, R"({"stage": 2})"), lora, machine_of(1, 8, 40, 900)},
      {"one card", llama_8b, config_of(autos, R"({"stage": 2})"), full, machine_of(1, 1, 80, 256)},
  };
}

Files files_of(const Given& given) {
  Files files;
  files.write("model.json", model_json(given.shape));
  if (!given.config.empty()) files.write("ds_config.json", given.config);
  if (!given.run.empty()) files.write("train.yaml", given.run);
  files.write("hardware.json", given.machine);
  return files;
}

TEST(Offers, AreTakenWithTheFiguresThatTheyHad) {
  int taken = 0;
  for (const Given& given : all_given()) {
    Files files = files_of(given);
    const Diagnosis asked = files.diagnose();
    for (const Alternative& row : asked.alternatives) {
      if (row.verdict != Verdict::runs || row.changes == 0) continue;
      const std::string what = fmt::format("{}: {} {}", given.name, name_of(row.engine), row.words);
      ASSERT_FALSE(row.words.empty()) << what;
      files.question.changes = words_in(row.words);

      const Diagnosis changed = files.diagnose();

      const Forecast& forecast = forecast_of(changed, row.engine);
      EXPECT_EQ(forecast.verdict, Verdict::runs) << what << "\n" << messages(changed);
      EXPECT_EQ(exit_code_of(changed, row.engine), 0) << what;
      // Ours is an arena with its gaps, which the phases of a plan leave out.
      const double most = most_of(forecast, Space::device);
      const double gaps = row.engine == Engine::underkeel ? 0.01 * most : 0;
      EXPECT_GE(row.device_bytes, most - 1) << what;
      EXPECT_LE(row.device_bytes, most + gaps + 1) << what;
      if (row.device_margin_bytes) {
        EXPECT_GE(*row.device_margin_bytes, 0) << what;
        const auto& step = forecast.at(Phase::step, Space::device);
        EXPECT_NEAR(*step->limit_bytes - row.device_bytes, *row.device_margin_bytes, 1) << what;
      }
      if (row.engine == Engine::deepspeed) {
        EXPECT_NEAR(most_of(forecast, Space::host), row.host_bytes, 1) << what;
        EXPECT_GE(row.host_margin_bytes.value_or(0), 0) << what;
      } else {
        EXPECT_NE(says(changed, "underkeel-host").find(amount(row.host_bytes) + " while loading"),
                  std::string::npos)
            << what << says(changed, "underkeel-host");
      }
      ++taken;
    }
  }
  EXPECT_GT(taken, 60);
}

struct Mix {
  std::string_view name;
  const Shape* shape;
  std::string zero;
  std::string run;
  std::string machine;
};

/// Models, stages, offloads, ranks, checkpointing, evaluation, adapters, host and disk, each with each of some others: a
/// figure of `index` chooses every setting.
Mix mix_of(int index) {
  constexpr const Shape* shapes[] = {&qwen_half, &llama_7b, &llama_8b, &qwen_14b, &llama_70b};
  constexpr const char* offloads[] = {
      "", R"(, "offload_optimizer": {"device": "cpu"})",
      R"(, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"})"};
  constexpr std::pair<int, int> places[] = {{1, 1}, {1, 4}, {2, 8}, {8, 8}, {1, 2}};
  constexpr const char* evaluations[] = {
      "", "eval_strategy: steps\nval_size: 0.1\nper_device_eval_batch_size: 64\n"};
  constexpr const char* saves[] = {"", "save_steps: 100\nmax_steps: 300\n",
                                   "save_strategy: \"no\"\n"};
  constexpr double gpu_gibs[] = {24, 40, 80};
  constexpr double host_gibs[] = {128, 512, 2048};
  const auto at = [&](const auto& all, int step) {
    return all[static_cast<std::size_t>(index / step) % std::size(all)];
  };
  const auto [nodes, gpus] = at(places, 1);
  const bool recomputes = index % 3 != 0;
  const bool is_lora = index % 7 == 3;
  const int stage = index % 4;
  const Shape* shape = at(shapes, 1 + index % 2);
  const double parameters = shape == &llama_70b ? 70.6e9 : shape == &qwen_half ? 0.5e9 : 8e9;
  std::string more;
  // Room for some of what is written, or not told.
  if (index % 2 == 0) more += fmt::format(R"(, "out_free_gib": {:.0f})", parameters * 26 / 1e9);
  return {.name = "mix",
          .shape = shape,
          .zero = fmt::format(R"({{"stage": {}{}}})", stage, at(offloads, 2)),
          .run = run_of(fmt::format("finetuning_type: {}\ncutoff_len: 1024\n{}{}{}",
                                    is_lora ? "lora" : "full",
                                    recomputes ? "" : "disable_gradient_checkpointing: true\n",
                                    at(evaluations, 1), at(saves, 1))),
          .machine = machine_of(nodes, gpus, at(gpu_gibs, 2), at(host_gibs, 3), more)};
}

/// The disk and a resume are those of the row too.
TEST(Offers, OfAnyMixAreTakenInEverySpace) {
  int taken = 0;
  for (int index = 0; index < 30; ++index) {
    const Mix mix = mix_of(index);
    Files files;
    files.write("model.json", model_json(*mix.shape));
    files.write("ds_config.json", config_of(autos, mix.zero));
    files.write("train.yaml", mix.run);
    files.write("hardware.json", mix.machine);
    const Diagnosis asked = diagnose(files.question, need_of);
    int rows = 0;
    for (const Alternative& row : asked.alternatives) {
      if (row.verdict != Verdict::runs || row.changes == 0 || ++rows > 12) continue;
      const std::string what = fmt::format("{} {} {} {} : {} {}", index, mix.zero, mix.machine,
                                           mix.run, name_of(row.engine), row.words);
      Question question = files.question;
      question.changes = words_in(row.words);

      const Diagnosis changed = diagnose(question, need_of);

      const Forecast& forecast = forecast_of(changed, row.engine);
      EXPECT_EQ(forecast.verdict, Verdict::runs) << what << "\n" << messages(changed);
      EXPECT_EQ(exit_code_of(changed, row.engine), 0) << what << "\n" << messages(changed);
      const double most = most_of(forecast, Space::device);
      const double gaps = row.engine == Engine::underkeel ? 0.01 * most : 0;
      EXPECT_GE(row.device_bytes, most - 1) << what;
      EXPECT_LE(row.device_bytes, most + gaps + 1) << what;
      EXPECT_GE(row.disk_margin_bytes.value_or(0), 0) << what;
      if (row.disk_bytes && found(changed, "deepspeed-disk-unbounded").empty()) {
        const std::string disk = amount(*row.disk_bytes);
        EXPECT_NE(messages(changed).find(disk), std::string::npos) << what << disk;
      }
      ++taken;
      if (row.engine == Engine::underkeel) continue;
      EXPECT_NEAR(most_of(forecast, Space::host), row.host_bytes, 1) << what;
      ASSERT_TRUE(row.resume.has_value()) << what;
      EXPECT_EQ(!found(changed, "resume-host-short").empty(), *row.resume == Verdict::fails)
          << what;
      EXPECT_EQ(!found(changed, "resume-host-may-be-short").empty(),
                *row.resume == Verdict::unknown)
          << what;
    }
  }
  EXPECT_GT(taken, 100);
}

TEST(Offers, OfMoreRanksAreTakenOnSoManyNodes) {
  int taken = 0;
  for (const Given& given : all_given()) {
    Files files = files_of(given);
    const Diagnosis asked = files.diagnose();
    const auto told = found(asked, "underkeel-enough-ranks");
    if (told.empty()) continue;
    EXPECT_EQ(asked.underkeel.verdict, Verdict::fails) << given.name;
    const auto slot = [&](std::string_view name) {
      for (const Slot& each : told[0].slots)
        if (each.name == name) return each.text;
      return std::string();
    };
    const auto machine = spec::read_hardware_file(files.at("hardware.json"));
    ASSERT_TRUE(machine.has_value());
    test::write_text(files.at("hardware.json"),
                     machine_of(std::stoi(slot("nodes")), static_cast<int>(machine->gpus_per_node),
                                static_cast<double>(machine->gpu_mem_bytes) / (1 << 30),
                                static_cast<double>(machine->host_ram_bytes) / (1 << 30)));
    files.question.changes = words_in(slot("words"));

    const Diagnosis changed = files.diagnose();

    EXPECT_EQ(changed.underkeel.verdict, Verdict::runs)
        << given.name << ": " << slot("words") << "\n"
        << messages(changed);
    EXPECT_NE(says(changed, "underkeel-fits").find("fits: " + slot("device")), std::string::npos)
        << given.name << says(changed, "underkeel-fits");
    EXPECT_NE(says(changed, "ranks-counted").find(slot("ranks") + " ranks"), std::string::npos);
    ++taken;
  }
  EXPECT_GE(taken, 3);
}

/// A verdict and the findings that stand beside it say the same.
TEST(Offers, AFailureHasAnErrorAndAnErrorFails) {
  for (const Given& given : all_given()) {
    const Diagnosis diagnosis = files_of(given).diagnose();
    for (const Engine engine : {Engine::deepspeed, Engine::underkeel}) {
      bool has_error = false;
      for (const Finding& finding : diagnosis.findings)
        has_error = has_error || (finding.severity == Severity::error &&
                                  (finding.engine == engine || finding.engine == Engine::both));
      EXPECT_EQ(forecast_of(diagnosis, engine).verdict == Verdict::fails, has_error)
          << given.name << " " << name_of(engine) << "\n"
          << messages(diagnosis);
    }
  }
}

}  // namespace
}  // namespace underkeel::doctor
