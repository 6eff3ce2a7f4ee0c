// underkeel bench step: how fast this machine trains a shape.

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "command.h"
#include "train/bench_step.h"

namespace underkeel::apps {

namespace {

struct Words {
  std::string shape;
  std::string model;
  std::string device = "auto";
  std::string recompute = "auto";
  bool f32 = false;
  train::BenchStepRequest request;
};

Result<void> run(Words words) {
  train::BenchStepRequest& request = words.request;
  if (words.model.empty()) {
    UK_TRY(shape, train::shape_of(words.shape));
    request.model = std::move(shape);
  } else {
    UK_TRY(folder, spec::find_model_folder(words.model));
    UK_TRY(model, spec::read_model_config(folder));
    request.model = std::move(model);
  }
  request.run.device = words.device;
  request.run.precision = words.f32 ? spec::Precision::f32 : spec::Precision::bf16;
  request.run.recompute = words.recompute == "none"    ? spec::Recompute::none
                          : words.recompute == "cheap" ? spec::Recompute::cheap
                          : words.recompute == "block" ? spec::Recompute::block
                                                       : spec::Recompute::automatic;
  UK_TRY(report, train::bench_step(request));
  fmt::print("{}: {} x {} x {} tokens a step, {}{}\n",
             words.model.empty() ? words.shape : words.model, request.accumulation_steps,
             request.sequences_per_micro_batch, request.sequence_tokens, report.device,
             request.ranks > 1 ? fmt::format(", each rank, stage {}", request.run.zero.stage) : "");
  fmt::print(
      "step {:.4g} s (median of {}), {:.1f} ms a micro-step, {:.0f} tokens/s, {:.1f} TFLOP/s a "
      "rank\n",
      report.median_step_s, report.step_s.size(),
      1e3 * report.median_step_s / static_cast<double>(request.accumulation_steps),
      report.tokens_per_s, 1e-12 * report.flops_per_s);
  fmt::print("steps");
  for (const double s : report.step_s) fmt::print(" {:.4f}", s);
  fmt::print(" s\nlosses");
  for (const double loss : report.losses) fmt::print(" {:.9g}", loss);
  fmt::print("\nstart {:.1f} s, device arena {}", report.start_s,
             format_bytes(report.device_bytes));
  if (report.driver_bytes > 0)
    fmt::print(", of the GPU's memory {} with libraries, {} bytes more since the first step",
               format_bytes(report.driver_bytes), report.driver_growth_bytes);
  fmt::print("\n");
  return {};
}

}  // namespace

void add_bench(CLI::App& app, Chosen& chosen) {
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine.");
  bench->require_subcommand(1);
  CLI::App* step = bench->add_subcommand(
      "step",
      "Time optimizer steps of a shape: random weights, synthetic tokens, as train runs them.");
  auto words = std::make_shared<Words>();
  CLI::Option* shape = step->add_option(
      "--shape", words->shape, fmt::format("one of {}", fmt::join(train::shape_names(), ", ")));
  step->add_option("--model", words->model, "a model folder whose config.json is the shape")
      ->excludes(shape);
  step->add_option("--sequence", words->request.sequence_tokens, "tokens of a sequence (2048)")
      ->check(CLI::Range(1, 1 << 24));
  step->add_option("--batch", words->request.sequences_per_micro_batch,
                   "sequences of a micro-batch (4)")
      ->check(CLI::Range(1, 1 << 20));
  step->add_option("--accumulate", words->request.accumulation_steps, "micro-batches a step (8)")
      ->check(CLI::Range(1, 1 << 20));
  step->add_option("--steps", words->request.steps, "timed steps, after one that is not (5)")
      ->check(CLI::Range(1, 1 << 20));
  step->add_option("--ranks", words->request.ranks,
                   "ranks, each with a GPU where there are GPUs (1)")
      ->check(CLI::Range(1, 4096));
  step->add_option("--stage", words->request.run.zero.stage, "ZeRO stage (0)")
      ->check(CLI::Range(0, 3));
  step->add_option("--device", words->device, "cpu, cuda or auto (auto)")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  step->add_option("--recompute", words->recompute, "auto, none, cheap or block (auto)")
      ->check(CLI::IsMember({"auto", "none", "cheap", "block"}));
  step->add_flag("--f32", words->f32, "f32 instead of bf16 with f32 master weights");
  step->callback([words, &chosen] { chosen.run = [words] { return run(*words); }; });
}

}  // namespace underkeel::apps
