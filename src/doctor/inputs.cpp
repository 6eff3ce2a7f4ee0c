#include "doctor/inputs.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/byte_order_mark.h"
#include "doctor/accelerate_rules.h"
#include "doctor/config_rules.h"
#include "doctor/model_twins.h"
#include "spec/run_overrides.h"
#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;
using spec::ValueKind;

class Gatherer {
 public:
  Gatherer(const Question& question, std::vector<Finding>& findings)
      : question_(question), findings_(findings) {}

  Inputs gather() {
    if (!question_.hardware.empty()) place_hardware();
    for (const fs::path& path : question_.paths) place(open_document(path, findings_));
    apply_changes();
    follow_run_file();
    follow_accelerate();
    change_config();
    count_ranks();
    return std::move(inputs_);
  }

 private:
  void keep(std::optional<Document>& place, Document document) {
    if (!place) {
      place = std::move(document);
      return;
    }
    findings_.push_back({.id = "file-passed-over",
                         .severity = Severity::warning,
                         .file = document.path,
                         .slots = {{"other", place->path}}});
  }

  void place(Document document) {
    if (document.is_unread &&
        (document.kind == FileKind::run_file || document.kind == FileKind::deepspeed_config)) {
      inputs_.has_unread = true;
      unread_paths_.push_back(document.path);
      return;
    }
    if (!inputs_.machine && is_lost_machine(document)) {
      inputs_.machine_is_refused = true;
      inputs_.machine_file = document.file;
      return;
    }
    switch (document.kind) {
      case FileKind::deepspeed_config:
        return keep(inputs_.deepspeed, std::move(document));
      case FileKind::run_file:
        return keep(inputs_.run, std::move(document));
      case FileKind::export_file:
        return keep(inputs_.exporting, std::move(document));
      case FileKind::accelerate_config:
        return keep(inputs_.accelerate, std::move(document));
      case FileKind::adapter_config:
        return keep(inputs_.adapter, std::move(document));
      case FileKind::generation_config:
        return keep(inputs_.generation, std::move(document));
      case FileKind::tokenizer_config:
        return keep(inputs_.tokenizer, std::move(document));
      case FileKind::data_shape:
        return keep(inputs_.data_shape, std::move(document));
      case FileKind::model_config:
        return read_model(document.path, document.path);
      case FileKind::model_folder: {
        inputs_.model_folder = document.path;
        take_adapter_of(document.path);
        const fs::path config = fs::path(document.path) / "config.json";
        std::error_code status;
        if (fs::exists(config, status)) read_model(config, document.path);
        inputs_.others.push_back(std::move(document));
        return;
      }
      case FileKind::checkpoint_folder: {
        const fs::path config = fs::path(document.path) / "config.json";
        std::error_code status;
        if (!inputs_.model && fs::exists(config, status)) read_model(config, document.path);
        inputs_.others.push_back(std::move(document));
        return;
      }
      case FileKind::adapter_folder:
        take_adapter_of(document.path);
        inputs_.others.push_back(std::move(document));
        return;
      case FileKind::hardware:
        return read_machine(document);
      default:
        inputs_.others.push_back(std::move(document));
    }
  }

  /// The config of the adapters that lie in a folder, as if it had been given by itself.
  void take_adapter_of(const fs::path& folder) {
    const fs::path config = folder / "adapter_config.json";
    std::error_code status;
    if (inputs_.adapter || !fs::exists(config, status)) return;
    Document document = open_document(config, findings_);
    if (document.kind == FileKind::adapter_config) inputs_.adapter = std::move(document);
  }

  /// A description of a machine that could not be read: by its keys, and where none could be seen by its name. This
  /// machine's figures are not to stand in for it.
  static bool is_lost_machine(const Document& document) {
    if (document.kind == FileKind::hardware) return document.is_unread;
    if (document.kind != FileKind::unknown) return false;
    const std::string name = lower_case(document.file);
    return name.find("hardware") != std::string::npos || name.find("machine") != std::string::npos;
  }

  void refuse(std::string_view id, const Error& error, const fs::path& file,
              Engine engine = Engine::both) {
    findings_.push_back(
        {.id = std::string(id),
         .severity = Severity::error,
         .engine = engine,
         .file = file.filename().string(),
         .slots = {{"what", error.what}, {"where", error.where}, {"fix", error.fix}}});
  }

  void read_model(const fs::path& file, const fs::path& shown) {
    if (inputs_.model) {
      findings_.push_back({.id = "file-passed-over",
                           .severity = Severity::warning,
                           .file = shown.string(),
                           .slots = {{"other", inputs_.model_file}}});
      return;
    }
    const auto text = spec::read_text_file(file);
    if (!text) return refuse("file-unreadable", text.error(), file);
    if (shown != file && text->starts_with(byte_order_mark))  // else told when it was opened
      findings_.push_back({.id = "json-not-strict",
                           .severity = Severity::warning,
                           .engine = Engine::deepspeed,
                           .file = file.filename().string(),
                           .slots = {{"what", "line 1, column 1: a byte-order mark"}}});
    auto model = spec::parse_model_config(*text, file.string());
    inputs_.model_file = file.filename().string();
    if (!model) {
      inputs_.model_is_refused = true;
      const bool is_ours = model.error().code == ErrorCode::unsupported;
      return refuse(is_ours ? "model-unsupported" : "model-broken", model.error(), file,
                    is_ours ? Engine::underkeel : Engine::both);
    }
    inputs_.model = std::move(*model);
  }

  /// What --hardware names is a machine or an error; no other file stands in for it.
  void place_hardware() {
    const std::size_t told = findings_.size();
    const Document document = open_document(question_.hardware, findings_);
    inputs_.machine_file = document.file;
    if (document.kind == FileKind::hardware) return read_machine(document);
    inputs_.machine_is_refused = true;
    const bool is_told =
        std::any_of(findings_.begin() + static_cast<std::ptrdiff_t>(told), findings_.end(),
                    [](const Finding& each) { return each.severity == Severity::error; });
    if (!is_told)
      findings_.push_back({.id = "hardware-is-no-machine",
                           .severity = Severity::error,
                           .file = document.file,
                           .key = "--hardware"});
  }

  void read_machine(const Document& document) {
    if (inputs_.machine || inputs_.machine_is_refused) {
      findings_.push_back({.id = "file-passed-over",
                           .severity = Severity::warning,
                           .file = document.path,
                           .slots = {{"other", inputs_.machine_file}}});
      return;
    }
    inputs_.machine_file = document.file;
    auto machine = spec::read_hardware_file(document.path);
    if (!machine) {
      inputs_.machine_is_refused = true;
      Error error = machine.error();
      if (!error.fix.empty()) error.what += "; " + error.fix;
      return refuse("machine-broken", error, document.path);
    }
    inputs_.machine = std::move(*machine);
  }

  /// A path in a run file counts from the working folder; where nothing is there, from the file's own folder.
  fs::path resolved(const std::string& name) const {
    std::error_code status;
    if (fs::exists(name, status)) return name;
    const fs::path beside = fs::path(inputs_.run->path).parent_path() / name;
    return fs::exists(beside, status) ? beside : fs::path(name);
  }

  /// What the command line changes of the run file, so that every rule sees the run as it would start. Words that
  /// cannot be read are told with the run file's own problems.
  void apply_changes() {
    spec::Problems ignored;
    std::vector<spec::Override> changes;
    if (inputs_.run) changes = spec::take_dotted_keys(inputs_.run->root);
    for (spec::Override& change : spec::parse_overrides(question_.changes, ignored))
      changes.push_back(std::move(change));
    std::string without_run;
    for (spec::Override& change : changes) {
      const bool is_of_deepspeed = change.path[0] == "deepspeed";
      if (is_of_deepspeed && change.path.size() > 1) {
        config_changes_.push_back(std::move(change));
      } else if (inputs_.run) {
        // Another config on the command line holds over the one that was given.
        if (is_of_deepspeed && change.value.overridden) inputs_.deepspeed.reset();
        spec::apply_override(change, 0, inputs_.run->root, ignored);
      } else {
        without_run +=
            fmt::format("{}`{}`", without_run.empty() ? "" : ", ", fmt::join(change.path, "."));
      }
    }
    if (!without_run.empty())
      findings_.push_back({.id = "changes-without-run-file",
                           .severity = Severity::warning,
                           .engine = Engine::deepspeed,
                           .slots = {{"keys", without_run}}});
  }

  void follow_run_file() {
    if (!inputs_.run) return;
    const spec::Value& root = inputs_.run->root;
    follow_config(root);
    follow_checkpoint(root);
    if (!inputs_.model_folder.empty() || inputs_.model_is_refused) return;
    if (const auto name = text_at(root, "model_name_or_path")) {
      const auto folder = spec::find_model_folder(resolved(*name).string());
      if (inputs_.model) {
        // Whoever gives a description of a model that is elsewhere knows that it is.
        if (folder) follow_folder_of_described(*folder);
        return;
      }
      if (!folder) return tell_model_elsewhere(folder.error());
      inputs_.model_folder = *folder;
      const fs::path config = *folder / "config.json";
      std::error_code status;
      if (fs::exists(config, status)) read_model(config, *folder);
    }
  }

  /// The sizes are those of the description that was given; the run's tokenizer, weights and data are looked at where the
  /// folder that it names is of a model with the same tensors.
  void follow_folder_of_described(const fs::path& folder) {
    const fs::path config = folder / "config.json";
    std::error_code status;
    if (fs::exists(config, status)) {
      const auto text = spec::read_text_file(config);
      const auto own = text ? spec::parse_model_config(*text, config.string())
                            : Result<spec::ModelSpec>(tl::unexpected(text.error()));
      if (!own || !have_same_tensors(*own, *inputs_.model)) {
        findings_.push_back(
            {.id = "model-folder-not-judged",
             .severity = Severity::warning,
             .file = inputs_.run->file,
             .key = "model_name_or_path",
             .line = line_of(inputs_.run->root, "model_name_or_path"),
             .slots = {{"folder", folder.string()}, {"given", inputs_.model_file}}});
        return;
      }
      if (const std::string differ = differing_fields(*inputs_.model, *own); !differ.empty())
        findings_.push_back(
            {.id = "model-config-differs",
             .severity = Severity::warning,
             .file = inputs_.run->file,
             .key = "model_name_or_path",
             .line = line_of(inputs_.run->root, "model_name_or_path"),
             .slots = {
                 {"folder", folder.string()}, {"given", inputs_.model_file}, {"differ", differ}}});
    }
    inputs_.model_folder = folder;
  }

  /// Files may be asked about where the run would not start: what they say is judged without the model.
  void tell_model_elsewhere(const Error& error) {
    inputs_.model_is_elsewhere = true;
    findings_.push_back({.id = "model-elsewhere",
                         .severity = Severity::warning,
                         .file = inputs_.run->file,
                         .key = "model_name_or_path",
                         .line = line_of(inputs_.run->root, "model_name_or_path"),
                         .slots = {{"what", error.what},
                                   {"where", error.where},
                                   {"do", error.fix.empty() ? "@model.name-folder" : error.fix}}});
  }

  /// What the run names or holds, unless another config was given: then the answer is about that one.
  void follow_config(const spec::Value& root) {
    const spec::Value* named = value_at(root, "deepspeed");
    std::optional<Document> own;
    if (named != nullptr && named->kind == ValueKind::mapping) {
      own = config_in_run_file(*named);
    } else if (named != nullptr && named->kind == ValueKind::text) {
      const fs::path file = resolved(named->text);
      std::error_code status;
      if (inputs_.deepspeed &&
          (!fs::exists(file, status) || fs::equivalent(file, inputs_.deepspeed->path, status)))
        return;  // it is the one that was given, or that one stands for it
      for (const fs::path& unread : unread_paths_)
        if (fs::equivalent(unread, file, status)) return;  // told already
      std::vector<Finding> of_other;
      const bool is_asked_about = !inputs_.deepspeed;
      Document document = open_document(file, is_asked_about ? findings_ : of_other);
      if (document.is_unread && is_asked_about) inputs_.has_unread = true;
      if (document.kind == FileKind::unknown && document.root.kind == ValueKind::mapping)
        document.kind = FileKind::deepspeed_config;  // the run file says what it is
      if (document.kind == FileKind::deepspeed_config && !document.is_unread)
        own = std::move(document);
    }
    if (!own) return;
    (inputs_.deepspeed ? inputs_.passed_over : inputs_.deepspeed) = std::move(own);
  }

  Document config_in_run_file(spec::Value root) const {
    return {.path = inputs_.run->path,
            .file = inputs_.run->file,
            .kind = FileKind::deepspeed_config,
            .root = std::move(root)};
  }

  /// The checkpoint that the run would go on from, as if it had been given.
  void follow_checkpoint(const spec::Value& root) {
    const auto name = text_at(root, "resume_from_checkpoint");
    std::error_code status;
    if (!name || !fs::is_directory(resolved(*name), status)) return;
    Document document = open_document(resolved(*name), findings_);
    for (const Document& other : inputs_.others)
      if (fs::equivalent(other.path, document.path, status)) return;
    inputs_.others.push_back(std::move(document));
  }

  /// Under `accelerate launch` a run without a config of its own takes the one that accelerate makes, or names.
  void follow_accelerate() {
    const bool is_asked_about = inputs_.run || inputs_.model;
    if (!inputs_.accelerate || inputs_.deepspeed || inputs_.has_unread || !is_asked_about) return;
    const Document& accelerate = *inputs_.accelerate;
    auto made = config_of_plugin(accelerate, inputs_.run ? &inputs_.run->root : nullptr);
    if (!made) return;
    findings_.push_back(
        {.id = "accelerate-makes-the-config",
         .engine = Engine::deepspeed,
         .file = accelerate.file,
         .key = "deepspeed_config",
         .line = line_of(accelerate.root, "deepspeed_config"),
         .slots = {{"stage", fmt::format("{}", stage_in(*made))},
                   {"optimizer",
                    text_at(*made, "zero_optimization.offload_optimizer.device").value_or("none")},
                   {"param",
                    text_at(*made, "zero_optimization.offload_param.device").value_or("none")}}});
    // Our engine reads the run file alone, as it would without accelerate.
    inputs_.deepspeed = Document{.path = inputs_.run ? inputs_.run->path : accelerate.path,
                                 .file = accelerate.file,
                                 .kind = FileKind::deepspeed_config,
                                 .root = std::move(*made)};
  }

  /// `deepspeed.KEY=VALUE`, for both engines.
  void change_config() {
    if (config_changes_.empty()) return;
    if (!inputs_.deepspeed && inputs_.run) {
      // Whoever writes the file for a run leaves the batch to the run; DeepSpeed stops without these keys.
      spec::Value root{.kind = ValueKind::mapping};
      for (const char* key :
           {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
        root.entries.push_back({.key = key, .value = {.kind = ValueKind::text, .text = "auto"}});
      inputs_.deepspeed = config_in_run_file(std::move(root));
    }
    if (!inputs_.deepspeed) return;
    spec::Problems ignored;
    for (const spec::Override& change : config_changes_)
      spec::apply_override(change, 1, inputs_.deepspeed->root, ignored);
  }

  /// The ranks that a config alone is for, where it gives all three sizes of its batch; 0 where none makes them agree.
  std::int64_t ranks_of_batch() const {
    if (!inputs_.deepspeed || inputs_.run || inputs_.accelerate) return 0;
    const spec::Value& root = inputs_.deepspeed->root;
    const auto size = [&](std::string_view key) { return whole_at(root, key).value_or(0); };
    constexpr std::int64_t most_ranks = 1 << 20;  // as --ranks
    const std::int64_t total = size("train_batch_size");
    const std::int64_t micro = size("train_micro_batch_size_per_gpu");
    const std::int64_t steps = size("gradient_accumulation_steps");
    if (total < 1 || micro < 1 || steps < 1 || micro > total / steps) return 0;
    const std::int64_t ranks = total / (micro * steps);
    return total % (micro * steps) == 0 && ranks <= most_ranks ? ranks : 0;
  }

  void count_ranks() {
    Ranks& ranks = inputs_.ranks;
    const auto given = [](const std::optional<Document>& document, std::string_view key) {
      const std::int64_t count = document ? whole_at(document->root, key).value_or(0) : 0;
      return count <= most_ranks_of_file ? count : 0;  // its own finding tells of the others
    };
    const std::int64_t of_run = given(inputs_.run, "underkeel.ranks");
    const std::int64_t of_accelerate = given(inputs_.accelerate, "num_processes");
    // Machines of one kind: as many as the launcher is told of, where the machine's own file names one.
    const std::int64_t machines = given(inputs_.accelerate, "num_machines");
    if (inputs_.machine && inputs_.machine->nodes == 1 && machines > 1)
      inputs_.machine->nodes = machines;
    const std::int64_t nodes =
        inputs_.machine ? inputs_.machine->nodes : std::max<std::int64_t>(1, machines);
    if (question_.ranks) {
      ranks = {.count = *question_.ranks, .source = "--ranks"};
    } else if (of_run > 0) {
      ranks = {.count = of_run, .source = "underkeel.ranks"};
    } else if (of_accelerate > 0) {
      ranks = {.count = of_accelerate, .source = "num_processes"};
    } else if (inputs_.machine && inputs_.machine->gpus_per_node > 0) {
      ranks = {.count = nodes * inputs_.machine->gpus_per_node, .source = inputs_.machine_file};
    } else if (const std::int64_t of_batch = ranks_of_batch(); of_batch > 0) {
      ranks = {.count = of_batch, .source = inputs_.deepspeed->file};
    }
    ranks.on_node = std::max<std::int64_t>(
        1, (ranks.count + std::min(nodes, ranks.count) - 1) / std::min(nodes, ranks.count));
    // More ranks than GPUs have a finding of their own; a node is judged with as many as it can take.
    if (inputs_.machine && inputs_.machine->gpus_per_node > 0)
      ranks.on_node = std::min<std::int64_t>(ranks.on_node, inputs_.machine->gpus_per_node);
  }

  const Question& question_;
  std::vector<Finding>& findings_;
  std::vector<spec::Override> config_changes_;
  std::vector<fs::path> unread_paths_;
  Inputs inputs_;
};

}  // namespace

Inputs gather(const Question& question, std::vector<Finding>& findings) {
  return Gatherer(question, findings).gather();
}

}  // namespace underkeel::doctor
