// underkeel bench step: how fast this machine trains a shape. underkeel bench hardware: its rates.

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "command.h"
#include "io/file.h"
#include "train/bench_hardware.h"
#include "train/bench_step.h"

namespace underkeel::apps {

namespace {

struct Words {
  std::string shape;
  std::string model;
  std::string device = "auto";
  std::string recompute = "auto";
  std::string precision = "bf16";
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
  request.run.precision = words.precision == "f32"         ? spec::Precision::f32
                          : words.precision == "fp16"      ? spec::Precision::f16
                          : words.precision == "pure_bf16" ? spec::Precision::pure_bf16
                                                           : spec::Precision::bf16;
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
  if (report.predicted_step_s > 0)
    fmt::print("predicted from {}: {:.4g} s, {:+.1f}% of what was measured\n", request.hardware,
               report.predicted_step_s, 100 * (report.predicted_step_s / report.median_step_s - 1));
  if (report.floor_step_s > 0)
    fmt::print(
        "floor {:.4g} s: its products and attention alone{}, {:.0f} tokens/s; the step reaches "
        "{:.1f}%\n",
        report.floor_step_s,
        report.floor_pieces > 1 ? fmt::format(" in {} pieces a micro-step", report.floor_pieces)
                                : "",
        static_cast<double>(report.tokens_per_step) / report.floor_step_s,
        100 * report.floor_step_s / report.median_step_s);
  if (report.floor_overflowed)
    fmt::print("floor not measured: numbers overflow where nothing runs between products\n");
  fmt::print("steps");
  for (const double s : report.step_s) fmt::print(" {:.4f}", s);
  fmt::print(" s\nlosses");
  for (const double loss : report.losses) fmt::print(" {:.9g}", loss);
  if (report.skipped_steps > 0)
    fmt::print("\n{} steps without an update: gradients were not finite", report.skipped_steps);
  fmt::print("\nstart {:.1f} s, device arena {}", report.start_s,
             format_bytes(report.device_bytes));
  if (report.driver_bytes > 0)
    fmt::print(", of the GPU's memory {} with libraries, {} bytes more since the first step",
               format_bytes(report.driver_bytes), report.driver_growth_bytes);
  if (report.graph_count > 0) fmt::print(", {} graphs", report.graph_count);
  fmt::print("\n");
  return {};
}

Result<void> run_hardware(const train::BenchHardwareRequest& request, const std::string& output) {
  UK_TRY(report, train::bench_hardware(request));
  const std::string text = train::hardware_yaml(report);
  fmt::print("{}", text);
  if (output.empty()) return {};
  io::FileSystem files;
  return files.write_text_durably(output, text);
}

void add_hardware(CLI::App& bench, Chosen& chosen) {
  CLI::App* hardware = bench.add_subcommand(
      "hardware",
      "Measure arithmetic, memory, links to and between GPUs and a disk: a hardware.yaml for "
      "`plan`.");
  struct Options {
    train::BenchHardwareRequest request;
    std::string output;
  };
  auto options = std::make_shared<Options>();
  hardware->add_option("--output", options->output, "also write it to this file");
  hardware->add_option("--device", options->request.device, "cpu, cuda or auto (auto)")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  hardware
      ->add_option("--folder", options->request.folder,
                   "on the disk to measure, where 1 GiB is free (.)")
      ->check(CLI::ExistingDirectory);
  hardware->add_option("--seconds", options->request.seconds, "for each measurement, about (1)")
      ->check(CLI::Range(0.001, 600.0));
  hardware->callback([options, &chosen] {
    chosen.run = [options] { return run_hardware(options->request, options->output); };
  });
}

}  // namespace

void add_bench(CLI::App& app, Chosen& chosen) {
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine.");
  bench->require_subcommand(1);
  add_hardware(*bench, chosen);
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
  step->add_option("--hardware", words->request.hardware,
                   "a hardware.yaml (`bench hardware`) to predict the step's time from")
      ->check(CLI::ExistingFile);
  step->add_option("--timing", words->request.matmul_timing_s,
                   "seconds to choose the matrix library's algorithms in at most; 0: its own (30)")
      ->check(CLI::Range(0, 3600));
  step->add_flag("--graphs,!--no-graphs", words->request.graphs,
                 "on a GPU: capture short launches into graphs, as train does (default)");
  step->add_option("--floor", words->request.floor_s,
                   "seconds to run the step's products and attention alone; 0: not at all (10)")
      ->check(CLI::Range(0, 3600));
  step->add_option("--precision", words->precision,
                   "bf16 or fp16, both with f32 master weights, pure_bf16 or f32 (bf16)")
      ->check(CLI::IsMember({"bf16", "fp16", "pure_bf16", "f32"}));
  step->callback([words, &chosen] { chosen.run = [words] { return run(*words); }; });
}

}  // namespace underkeel::apps
