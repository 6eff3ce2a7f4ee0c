#include "support/case.h"

#include <sstream>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "base/random.h"
#include "support/byte_tokenizer.h"
#include "support/model_folder.h"
#include "support/places.h"
#include "support/text_files.h"

namespace underkeel::test {
namespace {

namespace fs = std::filesystem;

fs::path cases() {
  return in_source("tests/cases");
}

/// `name.jsonl` lines of words, each as many bytes long as asked.
struct MadeText {
  std::int64_t samples = 64;
  std::int64_t shortest_bytes = 0;
  std::int64_t longest_bytes = 0;
};

std::string made_data_set(const MadeText& shape, std::uint64_t seed) {
  constexpr const char* words[] = {"tide ", "pier ", "rope ", "keel ", "buoy ", "wind ", "bell "};
  std::string lines;
  for (std::int64_t sample = 0; sample < shape.samples; ++sample) {
    const auto stream = static_cast<std::uint32_t>(sample);
    const auto extra = static_cast<std::uint64_t>(shape.longest_bytes - shape.shortest_bytes + 1);
    const auto length = static_cast<std::size_t>(shape.shortest_bytes) +
                        static_cast<std::size_t>(random_word(seed, stream, 0) % extra);
    std::string text = std::to_string(sample) + " ";
    for (std::uint64_t i = 1; text.size() < length; ++i)
      text += words[random_word(seed, stream, i) % std::size(words)];
    text.resize(length);
    lines += nlohmann::json{{"text", text}}.dump() + "\n";
  }
  return lines;
}

std::vector<std::string> names_in(const YAML::Node& node) {
  std::vector<std::string> names;
  if (!node) return names;
  std::istringstream text(node.as<std::string>());
  for (std::string name; std::getline(text, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    names.push_back(name);
  }
  return names;
}

/// The data set `name` as text: the case's own, one that cases share, or one made to shape.
std::string data_set(const fs::path& folder, const std::string& name, const YAML::Node& run,
                     std::uint64_t seed) {
  for (const auto& place : {folder, cases()})
    if (fs::exists(place / (name + ".jsonl"))) return read_text(place / (name + ".jsonl"));
  const auto cutoff = run["cutoff_len"].as<std::int64_t>();
  MadeText shape{.samples = 64, .shortest_bytes = cutoff, .longest_bytes = cutoff};
  if (fs::exists(folder / "data_shape.json")) {
    const auto shapes = nlohmann::json::parse(read_text(folder / "data_shape.json"));
    if (shapes.contains(name))
      shape = {.samples = shapes[name]["samples"],
               .shortest_bytes = shapes[name]["shortest_bytes"],
               .longest_bytes = shapes[name]["longest_bytes"]};
  }
  return made_data_set(shape, seed);
}

/// The entry of dataset_info.json for a data set, by what its first record looks like.
nlohmann::ordered_json entry_for(const std::string& set, const std::string& lines) {
  nlohmann::ordered_json entry = {{"file_name", set + ".jsonl"}};
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  if (first.contains("text")) {
    entry["columns"] = {{"prompt", "text"}};
  } else if (first.contains("messages")) {
    entry["formatting"] = "sharegpt";
    entry["columns"] = {{"messages", "messages"}};
    entry["tags"] = {{"role_tag", "role"},
                     {"content_tag", "content"},
                     {"user_tag", "user"},
                     {"assistant_tag", "assistant"},
                     {"system_tag", "system"}};
  }
  return entry;
}

std::string ds_config(int stage, const YAML::Node& run) {
  const auto is_set = [&](const char* key) { return run[key] && run[key].as<bool>(); };
  nlohmann::ordered_json config = {{"train_micro_batch_size_per_gpu", "auto"},
                                   {"gradient_accumulation_steps", "auto"},
                                   {"train_batch_size", "auto"},
                                   {"bf16", {{"enabled", is_set("bf16")}}},
                                   {"zero_optimization", {{"stage", stage}}}};
  if (is_set("fp16")) config["fp16"] = {{"enabled", true}};
  return config.dump(2) + "\n";
}

}  // namespace

RunnableCase complete_case(std::string_view name, const CaseOptions& options) {
  const fs::path source = cases() / name;
  if (!fs::exists(source / options.run_file))
    throw std::runtime_error("no such case: " + (source / options.run_file).string());
  RunnableCase made;
  made.model = made.folder / "model";
  made.data = made.folder / "data";
  made.output = made.folder / "output";
  made.run_file = made.folder / "train.yaml";
  YAML::Node run = YAML::LoadFile((source / options.run_file).string());

  auto model = nlohmann::json::parse(fs::exists(source / options.model_file)
                                         ? read_text(source / options.model_file)
                                         : tiny_model_json());
  if (!options.type.empty()) {
    model["torch_dtype"] = options.type;
    run.remove("bf16");
  }
  if (options.with_weights) {
    write_model_folder(made.model, model.dump(), options.seed);
  } else {
    write_text(made.model / "config.json", complete_config(model.dump()));
    write_byte_tokenizer(made.model);
  }

  nlohmann::ordered_json info;
  auto data_sets = names_in(run["dataset"]);
  for (const auto& held_out : names_in(run["eval_dataset"])) data_sets.push_back(held_out);
  for (const auto& set : data_sets) {
    const std::string lines = data_set(source, set, run, options.seed);
    write_text(made.data / (set + ".jsonl"), lines);
    info[set] = entry_for(set, lines);
  }
  write_text(made.data / "dataset_info.json", info.dump(2) + "\n");
  for (const char* file : {"tokenizer_config.json", "generation_config.json"})
    if (fs::exists(source / file))
      fs::copy_file(source / file, made.model / file, fs::copy_options::overwrite_existing);

  run["model_name_or_path"] = made.model.string();
  run["dataset_dir"] = made.data.string();
  run["output_dir"] = made.output.string();
  const bool has_own = fs::exists(source / "ds_config.json");
  if (has_own) fs::copy_file(source / "ds_config.json", made.folder / "ds_config.json");
  if (options.zero_stage) {
    write_text(made.folder / "ds_config.json", ds_config(*options.zero_stage, run));
  }
  if (has_own || options.zero_stage) run["deepspeed"] = (made.folder / "ds_config.json").string();
  write_text(made.run_file, YAML::Dump(run) + "\n");
  if (fs::exists(source / "hardware.yaml")) {
    made.hardware_file = made.folder / "hardware.yaml";
    fs::copy_file(source / "hardware.yaml", *made.hardware_file);
  }
  return made;
}

}  // namespace underkeel::test
