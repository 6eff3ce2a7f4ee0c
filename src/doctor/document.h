#pragma once
// One file that doctor was given: recognised by its content, read as leniently as it can be.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/finding.h"
#include "spec/value.h"

namespace underkeel::doctor {

enum class FileKind {
  deepspeed_config,
  run_file,     // LLaMA-Factory's, for training
  export_file,  // LLaMA-Factory's, for its export command
  accelerate_config,
  model_config,  // config.json, or a description of that kind
  hardware,
  adapter_config,
  generation_config,
  tokenizer_config,
  dataset_info,
  data_folder,  // holds a dataset_info.json
  data_shape,   // {NAME: {samples, tokens}}: a data set that is described instead of given
  records,      // a data file: JSON lines, a list of records, comma separated values
  run_record,  // what a run wrote about itself: trainer_state.json, results, memory.json; a tokenizer.json
  log,
  advice,   // text of people: an answer, an article
  weights,  // safetensors
  weight_index,
  model_folder,
  adapter_folder,
  deepspeed_checkpoint,
  checkpoint_folder,  // a checkpoint of ours or of the Trainer
  output_folder,      // holds checkpoints
  unknown
};
std::string_view name_of(FileKind kind);

struct Document {
  std::string path;  // as it was given
  std::string file;  // its last part, for messages
  FileKind kind = FileKind::unknown;
  spec::Value root;        // of what is JSON or YAML
  bool is_unread = false;  // it is JSON or YAML of its kind, and could not be parsed
  std::string text;        // of a log or advice: its last part when it is long
};

/// Reads and recognises `path`. What cannot be read, and what a strict reader would refuse, become findings; the
/// document then is as much as could be made of it.
Document open_document(const std::filesystem::path& path, std::vector<Finding>& findings);

/// What a mapping looks like, by its keys.
FileKind kind_of(const spec::Value& root);
/// What a file that cannot be parsed was to be, by the keys in it.
FileKind kind_of_broken(std::string_view text);
/// Whether a text names keys of a DeepSpeed config.
bool mentions_deepspeed_keys(std::string_view text);
/// Whether each of its keys is one that DeepSpeed knows at the top.
bool are_all_of_deepspeed(const spec::Value& root);

// Lenient look-ups: `path` is dotted. Absent, null, "auto" and values of another kind are nullopt, and so are figures that
// nothing of this world has: what is computed from the others stays within 64 bits.
constexpr double most_number = 9.2e18;
constexpr std::int64_t most_count = std::int64_t{1} << 40;
const spec::Value* value_at(const spec::Value& root, std::string_view path);
std::optional<double> number_at(const spec::Value& root, std::string_view path);
std::optional<std::int64_t> whole_at(const spec::Value& root, std::string_view path);
/// As pydantic reads a whole number where it is lax: true is 1, false is 0.
std::optional<std::int64_t> lax_whole_at(const spec::Value& root, std::string_view path);
std::optional<bool> truth_at(const spec::Value& root, std::string_view path);
std::optional<std::string> text_at(const spec::Value& root, std::string_view path);
bool is_auto_at(const spec::Value& root, std::string_view path);
/// Whether any value below is "auto": what the Trainer or accelerate has to fill in.
bool has_auto(const spec::Value& root);
/// ASCII letters alone.
std::string lower_case(std::string_view text);
/// The line of the key at `path`; 0 when it is not there.
int line_of(const spec::Value& root, std::string_view path);

}  // namespace underkeel::doctor
