// underkeel export CHECKPOINT OUT

#include "train/export.h"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"
#include "command.h"
#include "io/faults.h"
#include "train/process_memory.h"

namespace underkeel::apps {

namespace {

struct Words {
  train::ExportRequest request;
  std::string type;
  std::string max_shard = "5GB";
};

Result<void> run(const Words& words) {
  train::ExportRequest request = words.request;
  if (!words.type.empty()) {
    UK_TRY(type, parse_dtype(words.type, "--dtype"));
    if (type != DType::f32 && type != DType::bf16 && type != DType::f16)
      return fail(ErrorCode::unsupported, fmt::format("weights of type `{}`", words.type),
                  "--dtype", "write bf16, f16 or f32");
    request.type = type;
  }
  UK_TRY(max_shard_bytes, parse_bytes(words.max_shard, "--max-shard-size"));
  if (max_shard_bytes <= 0)
    return fail(ErrorCode::bad_config, "a file needs room for something", "--max-shard-size",
                "write a size such as 5GB");
  if (lacks_unit(words.max_shard, max_shard_bytes))
    return fail(ErrorCode::bad_config,
                fmt::format("`{}` is {} {}; no tensor fits into so little", words.max_shard,
                            format_count(max_shard_bytes), max_shard_bytes == 1 ? "byte" : "bytes"),
                "--max-shard-size", fmt::format("write a unit: {}GB", words.max_shard));
  request.max_shard_bytes = max_shard_bytes;
  UK_TRY(files, io::file_system_from_environment());
  UK_TRY(report, train::export_checkpoint(*files, request));
  if (!report.note.empty()) log(LogLevel::warning, report.note);
  fmt::print("exported {} to {}\n", report.from, request.into);
  fmt::print("{} parameters in {} tensors, {}{}, {} in {} {}\n",
             format_count(report.parameter_count), format_count(report.tensor_count),
             name_of(report.type), report.from_master ? " from the f32 master copy" : "",
             format_bytes(report.weight_bytes), report.file_count,
             report.file_count == 1 ? "file" : "files");
  UK_TRY(memory, train::read_process_memory());
  fmt::print("this process needed at most {} of memory\n",
             format_bytes(memory.most_resident_bytes));
  return {};
}

}  // namespace

void add_export(CLI::App& app, Chosen& chosen) {
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand(
      "export", "Write a Hugging Face folder from a checkpoint, tensor by tensor.");
  command
      ->add_option("CHECKPOINT", words->request.from,
                   "checkpoint, output folder (the model that it holds itself, with "
                   "load_best_model_at_end the best one; of a run that has not ended its newest "
                   "checkpoint) or model folder")
      ->required();
  command->add_option("OUT", words->request.into, "folder to write; must not be there yet")
      ->required();
  command->add_option("--dtype", words->type,
                      "bf16, f16 or f32 (as the checkpoint's weights are stored)");
  command->add_option("--max-shard-size", words->max_shard, "most bytes of a weights file (5GB)");
  command->callback([words, &chosen] { chosen.run = [words] { return run(*words); }; });
}

}  // namespace underkeel::apps
