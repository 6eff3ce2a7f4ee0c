#include "doctor/bare_json.h"

#include "spec/json_reader.h"

namespace underkeel::doctor {
namespace {

using spec::ValueKind;

/// ds_config.json, ds_z3_config.json, deepspeed.json.
bool is_named_as_config(std::string_view file) {
  const std::string name = lower_case(file);
  return name.starts_with("ds_") || name.starts_with("ds-") ||
         name.find("deepspeed") != std::string::npos;
}

}  // namespace

bool take_bare_json(std::string_view text, Document& document, std::vector<Finding>& findings) {
  const auto read = spec::read_json(text, document.file, spec::JsonDialect::relaxed);
  if (!read) return false;
  const spec::Value& root = read->root;
  const bool is_config = is_named_as_config(document.file);
  if (root.kind == ValueKind::mapping) {
    if (!root.entries.empty()) return false;
    document.root = root;
    document.kind = is_config                        ? FileKind::deepspeed_config
                    : document.file == "config.json" ? FileKind::model_config
                                                     : FileKind::unknown;
    if (document.kind == FileKind::unknown)
      findings.push_back({.id = "file-holds-nothing",
                          .severity = Severity::warning,
                          .file = document.file,
                          .slots = {{"found", "{}"}}});
    return true;
  }
  const bool is_list = root.kind == ValueKind::list;
  if (is_list && !is_config) return false;  // a data set
  findings.push_back({.id = "file-holds-no-object",
                      .severity = Severity::error,
                      .file = document.file,
                      .slots = {{"found", is_list ? "@bare.list" : spec::shown(root)},
                                {"example", "{\"train_micro_batch_size_per_gpu\": \"auto\"}"}}});
  return true;
}

}  // namespace underkeel::doctor
