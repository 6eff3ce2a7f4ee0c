// What inspect() saw, as text and as JSON.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"
#include "io/safetensors.h"
#include "train/inspect.h"

namespace underkeel::train {

namespace {

using nlohmann::json;

std::int64_t elements_of(const InspectedTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.shape) count *= extent;
  return count;
}

void add_files(const Inspection& seen, std::string& text) {
  std::size_t widest = 0;
  for (const InspectedFile& file : seen.files)
    for (const InspectedTensor& tensor : file.tensors)
      widest = std::max(widest, printable(tensor.name).size());
  std::int64_t tensor_count = 0;
  std::int64_t element_count = 0;
  std::int64_t size_bytes = 0;
  for (const InspectedFile& file : seen.files) {
    text += fmt::format("\n{}  {}\n", printable(file.name), format_bytes(file.size_bytes));
    for (const InspectedTensor& tensor : file.tensors) {
      text +=
          fmt::format("  {:{}}  {:5} {:16} {:>10}\n", printable(tensor.name), widest, tensor.type,
                      io::shape_text(tensor.shape), format_bytes(tensor.size_bytes));
      ++tensor_count;
      element_count += elements_of(tensor);
      size_bytes += tensor.size_bytes;
    }
  }
  if (!seen.files.empty())
    text += fmt::format("\n{} tensors, {} elements, {}\n", format_count(tensor_count),
                        format_count(element_count), format_bytes(size_bytes));
}

json to_json(const Error& error) {
  return {{"what", error.what}, {"where", error.where}, {"try", error.fix}};
}

json to_json(const InspectedFile& file) {
  json tensors = json::array();
  for (const InspectedTensor& tensor : file.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"shape", tensor.shape},
                       {"size_bytes", tensor.size_bytes}});
  return {{"name", file.name}, {"size_bytes", file.size_bytes}, {"tensors", std::move(tensors)}};
}

json to_json(const io::FolderTotals& totals) {
  return {{"files", totals.file_count},
          {"tensors", totals.tensor_count},
          {"tensor_bytes", totals.tensor_bytes},
          {"parameters_expected", totals.parameters_expected},
          {"parameters_found", totals.parameters_found}};
}

}  // namespace

std::string to_text(const Inspection& seen) {
  std::string text = fmt::format("{}: {}", name_of(seen.kind), printable(seen.path, any_length));
  if (seen.step) text += fmt::format(", step {}", *seen.step);
  text += "\n";
  if (seen.model)
    text += fmt::format("model: {}, {} layers of width {}, vocabulary {}, {} parameters, {} head\n",
                        seen.model->architecture, seen.model->layers, seen.model->width,
                        format_count(seen.model->vocabulary),
                        format_count(spec::parameter_count(*seen.model)),
                        seen.model->tied_head ? "tied" : "own");
  for (const io::CheckpointList::Complete& each : seen.checkpoints.complete)
    text += fmt::format("complete: {}\n", printable(each.folder, any_length));
  for (const io::CheckpointList::Skipped& each : seen.checkpoints.skipped)
    text += fmt::format("skipped:  {}: {}\n", printable(each.folder, any_length),
                        printable_lines(each.reason));
  add_files(seen, text);
  if (seen.totals)
    text += fmt::format("verified: {} parameters expected, {} found\n",
                        format_count(seen.totals->parameters_expected),
                        format_count(seen.totals->parameters_found));
  for (const std::string& warning : seen.warnings)
    text += "warning: " + printable_lines(warning) + "\n";
  for (const Error& problem : seen.problems) text += underkeel::to_text(problem) + "\n";
  if (seen.verified && seen.sound()) text += "verified: nothing is wrong\n";
  return text;
}

std::string to_json(const Inspection& seen) {
  json object{{"kind", name_of(seen.kind)},
              {"path", seen.path},
              {"verified", seen.verified},
              {"sound", seen.sound()},
              {"warnings", seen.warnings}};
  if (seen.step) object["step"] = *seen.step;
  object["files"] = json::array();
  for (const InspectedFile& file : seen.files) object["files"].push_back(to_json(file));
  if (seen.model)
    object["model"] = {{"architecture", seen.model->architecture},
                       {"parameters", spec::parameter_count(*seen.model)},
                       {"tied_head", seen.model->tied_head}};
  object["checkpoints"] = json::array();
  for (const io::CheckpointList::Complete& each : seen.checkpoints.complete)
    object["checkpoints"].push_back({{"step", each.step}, {"folder", each.folder}});
  object["skipped"] = json::array();
  for (const io::CheckpointList::Skipped& each : seen.checkpoints.skipped)
    object["skipped"].push_back({{"folder", each.folder}, {"reason", each.reason}});
  if (seen.totals) object["totals"] = to_json(*seen.totals);
  object["problems"] = json::array();
  for (const Error& problem : seen.problems) object["problems"].push_back(to_json(problem));
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace underkeel::train
