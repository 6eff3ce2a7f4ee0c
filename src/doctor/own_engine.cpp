#include "doctor/own_engine.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "doctor/config_rules.h"
#include "doctor/own_alternatives.h"
#include "planner/fit.h"
#include "planner/planner.h"
#include "render/render.h"
#include "spec/examine_run.h"
#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

using spec::Value;

/// A run file in the config's own words, for those who give a config alone: it disagrees nowhere.
std::string run_text_of(const Value& config) {
  std::string text = "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\n";
  const auto add = [&](std::string_view key, std::string_view path) {
    if (const Value* value = value_at(config, path); value != nullptr && spec::to_double(*value))
      text += fmt::format("{}: {}\n", key, value->text);
  };
  add("per_device_train_batch_size", "train_micro_batch_size_per_gpu");
  add("gradient_accumulation_steps", "gradient_accumulation_steps");
  add("max_grad_norm", "gradient_clipping");
  add("learning_rate", "optimizer.params.lr");
  add("adam_epsilon", "optimizer.params.eps");
  add("weight_decay", "optimizer.params.weight_decay");
  if (value_at(config, "optimizer") != nullptr && !number_at(config, "optimizer.params.lr"))
    text += "learning_rate: 0.001\n";
  const bool bf16 = truth_at(config, "bf16.enabled").value_or(false) ||
                    truth_at(config, "bfloat16.enabled").value_or(false) ||
                    is_auto_at(config, "bf16.enabled");
  if (bf16) text += "bf16: true\n";
  if (truth_at(config, "fp16.enabled").value_or(false) && !bf16) text += "fp16: true\n";
  return text;
}

struct Words {
  std::string text;
  std::filesystem::path file;
  std::vector<std::string> changes;
};

/// The run as it would be started with these files.
std::optional<Words> words_of(const Question& question, const Inputs& inputs) {
  if (inputs.has_unread) return std::nullopt;
  Words words;
  if (inputs.run) {
    const auto text = spec::read_text_file(inputs.run->path);
    if (!text) return std::nullopt;
    words = {.text = *text, .file = inputs.run->path};
  } else if (inputs.deepspeed && inputs.deepspeed->root.kind == spec::ValueKind::mapping) {
    words = {.text = run_text_of(inputs.deepspeed->root), .file = inputs.deepspeed->path};
  } else {
    return std::nullopt;
  }
  const Value empty;
  const Value& root = inputs.run ? inputs.run->root : empty;
  // A case may leave out what depends on where things lie.
  const auto fill = [&](std::string_view key, std::string_view value) {
    if (value_at(root, key) == nullptr) words.changes.push_back(fmt::format("{}={}", key, value));
  };
  fill("model_name_or_path",
       inputs.model_folder.empty() ? std::string("model") : inputs.model_folder.string());
  fill("output_dir", "out");
  fill("template", "empty");
  if (inputs.deepspeed && inputs.deepspeed->path != words.file)
    words.changes.push_back(fmt::format("deepspeed={}", inputs.deepspeed->path));
  else if (!inputs.run)
    words.changes.push_back(fmt::format("deepspeed={}", words.file.string()));
  words.changes.insert(words.changes.end(), question.changes.begin(), question.changes.end());
  return words;
}

/// Problems of a run file that LLaMA-Factory or the Trainer behind it stops on as well: keys that it has not, sizes that are no
/// sizes, combinations that it refuses.
bool trainer_stops_on(const spec::Problem& problem, std::string_view key, const Value& run) {
  if (problem.code != ErrorCode::bad_config) return false;
  // Of sections only our own has keys below it.
  if (problem.what == "unknown key") return key.find('.') == std::string_view::npos;
  if (key == "per_device_train_batch_size" || key == "learning_rate") return true;
  if (key == "gradient_accumulation_steps" || key == "cutoff_len") {
    const auto size = number_at(run, key);
    return size && *size <= 0;
  }
  if (key == "fp16")
    return truth_at(run, "fp16").value_or(false) && truth_at(run, "bf16").value_or(false);
  if (key == "quantization_bit") {
    const std::string type = text_at(run, "finetuning_type").value_or("lora");
    return type != "lora" && type != "oft";
  }
  return false;
}

Space space_of(plan::MemorySpace space) {
  switch (space) {
    case plan::MemorySpace::device:
      return Space::device;
    case plan::MemorySpace::pinned_host:
      return Space::pinned_host;
    case plan::MemorySpace::host:
      return Space::host;
    default:
      return Space::nvme;
  }
}

class OwnEngine {
 public:
  OwnEngine(const Question& question, const Inputs& inputs, const DiskNeed& disk_need,
            Diagnosis& diagnosis)
      : question_(question), inputs_(inputs), disk_need_(disk_need), diagnosis_(diagnosis) {}

  void look() {
    const auto words = words_of(question_, inputs_);
    if (!words) return;
    const spec::WorldSize world{inputs_.ranks.count, inputs_.ranks.source.starts_with('@')
                                                         ? "counted as 1"
                                                         : inputs_.ranks.source};
    auto readout = spec::examine_run_text(words->text, words->file, words->changes, world);
    if (!readout) return;  // the document's own finding says why
    for (const spec::Problem& problem : readout->problems.all()) tell(problem);
    if (!readout->problems.empty()) {
      diagnosis_.underkeel.verdict = Verdict::fails;
      // Without the offload that is refused, the rest of the run can still be planned.
      if (inputs_.model && knows_the_machine() && only_offload_is_refused(readout->problems)) {
        const auto question = fit_question(readout->run);
        append_alternatives(question);
      }
      return;
    }
    for (const std::string& note : readout->run.notes)
      diagnosis_.findings.push_back({.id = "underkeel-note",
                                     .engine = Engine::underkeel,
                                     .file = file_name(),
                                     .slots = {{"what", note}}});
    if (!inputs_.model) return;
    if (knows_the_machine()) return plan(readout->run);
    diagnosis_.findings.push_back({.id = "underkeel-machine-unread",
                                   .severity = Severity::warning,
                                   .engine = Engine::underkeel,
                                   .file = inputs_.machine_file});
  }

 private:
  std::string file_name() const {
    return inputs_.run ? inputs_.run->file : inputs_.deepspeed->file;
  }

  void tell(const spec::Problem& problem) {
    const bool is_later = problem.code == ErrorCode::unsupported;
    // "ds_config.json: zero_optimization.stage (line 4)": the file, the key and the line.
    std::string key = problem.key, file = file_name();
    if (inputs_.deepspeed && key.starts_with(inputs_.deepspeed->file + ": ")) {
      file = inputs_.deepspeed->file;
      key.erase(0, file.size() + 2);
    }
    int line = 0;
    // "deepspeed.train_batch_size": told of the whole run, but it stands in the config.
    constexpr std::string_view of_config = "deepspeed.";
    if (inputs_.deepspeed && key.starts_with(of_config)) {
      file = inputs_.deepspeed->file;
      key.erase(0, of_config.size());
      line = line_of(inputs_.deepspeed->root, key);
    }
    if (const std::size_t at = key.rfind(" (line "); at != std::string::npos) {
      line = std::atoi(key.c_str() + at + 7);
      key.erase(at);
    }
    const bool stops_theirs = inputs_.run && inputs_.run->file == file &&
                              trainer_stops_on(problem, key, inputs_.run->root);
    diagnosis_.findings.push_back(
        {.id = is_later       ? "underkeel-cannot-yet"
               : stops_theirs ? "run-file-refused"
                              : "underkeel-refuses",
         .severity = Severity::error,
         .engine = stops_theirs ? Engine::both : Engine::underkeel,
         .file = file,
         .key = key,
         .line = line,
         .slots = {{"key", key}, {"what", problem.what}, {"fix", problem.fix}}});
  }

  static bool only_offload_is_refused(const spec::Problems& problems) {
    return std::all_of(problems.all().begin(), problems.all().end(),
                       [](const spec::Problem& problem) {
                         return problem.code == ErrorCode::unsupported &&
                                problem.key.find("offload") != std::string::npos;
                       });
  }

  /// The described machine; else one with what the budgets give, a device budget being a GPU's; else this one.
  spec::HardwareSpec machine_asked_of() const {
    if (inputs_.machine) return *inputs_.machine;
    spec::HardwareSpec machine = spec::this_machine();
    if (question_.device_budget_bytes) {
      machine = {.gpus_per_node = inputs_.ranks.on_node,
                 .gpu_mem_bytes = *question_.device_budget_bytes};
    }
    if (question_.host_budget_bytes) machine.host_ram_bytes = *question_.host_budget_bytes;
    return machine;
  }

  /// A machine that was described and not read is not replaced by this one.
  bool knows_the_machine() const {
    return !inputs_.machine_is_refused || question_.device_budget_bytes;
  }

  planner::FitQuestion fit_question(spec::RunConfig& run) const {
    if (question_.device_budget_bytes) run.device_budget_bytes = question_.device_budget_bytes;
    if (question_.host_budget_bytes) run.host_budget_bytes = question_.host_budget_bytes;
    if (question_.data) run.data.samples = question_.data->sizes;
    spec::resolve_auto(run, inputs_.model->width);
    const spec::HardwareSpec machine = machine_asked_of();
    return {.model = *inputs_.model,
            .run = run,
            .machine = machine,
            .placement = planner::spread_evenly(machine, inputs_.ranks.count, false)};
  }

  void append_alternatives(const planner::FitQuestion& question) {
    const Value empty;
    const Value& config = inputs_.deepspeed ? inputs_.deepspeed->root : empty;
    for (Alternative& row : own_alternatives(question, config_words(config)))
      diagnosis_.alternatives.push_back(std::move(row));
  }

  /// A model whose state alone is beyond what CPU ranks have is not planned: that takes longer than an answer may.
  bool is_hopeless(const planner::FitQuestion& question) {
    const double limit = state_limit(question);
    const double state = least_state_bytes(question, question.run.zero.stage);
    if (question.machine.gpus_per_node > 0 || state <= limit) return false;
    diagnosis_.underkeel.verdict = Verdict::fails;
    append_alternatives(question);
    diagnosis_.findings.push_back(
        {.id = "underkeel-state-does-not-fit",
         .severity = Severity::error,
         .certainty = Certainty::bound,
         .engine = Engine::underkeel,
         .file = file_name(),
         .slots = {{"state", amount(state)},
                   {"limit", capacity(static_cast<std::int64_t>(limit))},
                   {"do", inputs_.ranks.count == 1      ? "@state.one-rank"
                          : question.run.zero.stage < 3 ? "@state.several-ranks"
                                                        : "@state.stage-3"}}});
    return true;
  }

  void plan(spec::RunConfig run) {
    const planner::FitQuestion question = fit_question(run);
    if (is_hopeless(question)) return;
    const spec::HardwareSpec& machine = question.machine;
    const plan::Plan plan = planner::make_plan_on(question);
    const planner::Room room = planner::room_of(run, machine, question.placement);
    fill(plan, room);
    const auto shortage = planner::shortage_of(plan, room);
    std::string cure = "@no-cure";
    if (shortage) {
      append_alternatives(question);
      for (const Alternative& row : diagnosis_.alternatives)
        if (row.engine == Engine::underkeel && row.verdict == Verdict::runs) {
          cure = row.words;
          break;
        }
    }
    diagnosis_.underkeel.verdict = shortage ? Verdict::fails : Verdict::runs;
    diagnosis_.findings.push_back({.id = shortage ? "underkeel-does-not-fit" : "underkeel-fits",
                                   .severity = shortage ? Severity::error : Severity::info,
                                   .engine = Engine::underkeel,
                                   .file = file_name(),
                                   .slots = slots_of(plan, room, shortage, cure)});
    tell_pieces(plan, run);
    if (question_.resumes) tell_resume(plan);
    check_disk(run, machine);
  }

  void tell(std::string_view id, Severity severity, std::string_view key, std::vector<Slot> slots) {
    diagnosis_.findings.push_back({.id = std::string(id),
                                   .severity = severity,
                                   .engine = Engine::underkeel,
                                   .file = file_name(),
                                   .key = std::string(key),
                                   .slots = std::move(slots)});
  }
  static std::string size_text(std::int64_t bytes) { return amount(static_cast<double>(bytes)); }

  /// Logits never exist whole: how much of them does, beside what they would be.
  void tell_pieces(const plan::Plan& plan, const spec::RunConfig& run) {
    const auto piece = [&](std::string_view prefix) {
      std::int64_t most = 0;
      for (const plan::Buffer& buffer : plan.schedule.buffers)
        if (buffer.name.starts_with(prefix)) most = std::max(most, buffer.size_bytes);
      return most;
    };
    const planner::Request request = planner::request_of(*inputs_.model, run, plan.world_size);
    const auto whole = [&](std::int64_t rows) {
      return bytes_of(DType::f32, rows * inputs_.model->vocabulary);
    };
    tell("underkeel-logits", Severity::info, "",
         {{"piece", size_text(piece("head.logits"))},
          {"whole", size_text(whole(request.max_rows))},
          {"rows", fmt::format("{}", request.max_rows)}});
    if (request.max_evaluation_rows > 0)
      tell("underkeel-evaluation-logits", Severity::info, "",
           {{"piece", size_text(piece("evaluation.head.logits"))},
            {"whole", size_text(whole(request.max_evaluation_rows))},
            {"rows", fmt::format("{}", request.max_evaluation_rows)}});
  }

  /// What a rank reads of a checkpoint, and through how much.
  void tell_resume(const plan::Plan& plan) {
    double read = 0;
    for (const plan::Op& op : plan.schedule.find(plan::SegmentKind::resume)->ops)
      read += op.cost.disk_bytes;
    std::int64_t ring = 0;
    for (const plan::Buffer& buffer : plan.schedule.buffers)
      if (buffer.name.starts_with("state.staging.")) ring += buffer.size_bytes;
    const auto peak = [&](render::Phase phase) {
      return size_text(render::bytes_of_phase(plan, phase, plan::MemorySpace::device));
    };
    tell("underkeel-resume", Severity::info, "",
         {{"read", amount(read)},
          {"ranks", fmt::format("{}", plan.world_size)},
          {"ring", size_text(ring)},
          {"resume", peak(render::Phase::resume)},
          {"step", peak(render::Phase::first_step)}});
  }

  /// As `plan` asks: whether the checkpoints that stand at once fit the described disk.
  void check_disk(const spec::RunConfig& run, const spec::HardwareSpec& machine) {
    if (!disk_need_ || !machine.out_free_bytes) return;
    if (run.save.strategy == spec::Cadence::no) return;
    const auto need = disk_need_(*inputs_.model, run);
    if (!need) return;  // a model whose files cannot be laid out is told of elsewhere
    const std::int64_t needed = io::needed_bytes(*need);
    const std::int64_t free = *machine.out_free_bytes;
    const std::int64_t limit = io::largest_limit_that_fits(*need, free);
    const bool fits = needed <= free;
    if (!fits) diagnosis_.underkeel.verdict = Verdict::fails;
    tell(fits ? "underkeel-disk-fits" : "underkeel-disk-does-not-fit",
         fits ? Severity::info : Severity::error, "save_total_limit",
         {{"needed", size_text(needed)},
          {"free", capacity(free)},
          {"count", fmt::format("{}", io::checkpoints_at_once(*need))},
          {"each", size_text(need->checkpoint_bytes)},
          {"final", size_text(need->export_bytes)},
          {"cure", limit > 0 ? fmt::format("save_total_limit: {}", limit) : "@disk.no-limit"}});
  }

  static std::vector<Slot> slots_of(const plan::Plan& plan, const planner::Room& room,
                                    const std::optional<planner::Shortage>& shortage,
                                    const std::string& cure) {
    const auto size = [](std::int64_t bytes) { return amount(static_cast<double>(bytes)); };
    std::vector<Slot> slots = {
        {"device", size(plan.layout.size_bytes[index(plan::MemorySpace::device)])},
        {"host", size(planner::needed_bytes(plan, room, std::nullopt))}};
    if (!shortage) return slots;
    const plan::MemorySpace space = shortage->space.value_or(plan::MemorySpace::host);
    slots.push_back({"space", fmt::format("@space.{}", shortage->space ? name_of(space) : "node")});
    slots.push_back({"needed", size(shortage->needed_bytes)});
    slots.push_back({"allowed", capacity(shortage->allowed_bytes)});
    slots.push_back({"cure", cure});
    return slots;
  }

  void fill(const plan::Plan& plan, const planner::Room& room) {
    for (std::size_t p = 0; p < phase_count; ++p)
      for (int s = 0; s < plan::memory_space_count; ++s) {
        const auto space = static_cast<plan::MemorySpace>(s);
        const std::int64_t size =
            render::bytes_of_phase(plan, static_cast<render::Phase>(p), space);
        if (size == 0) continue;
        Holding holding;
        holding.add("plan", static_cast<double>(size));
        if (const auto budget = planner::budget_of(plan, room, space))
          holding.limit_bytes = static_cast<double>(budget->size_bytes);
        diagnosis_.underkeel.at(static_cast<Phase>(p), space_of(space)) = holding;
      }
  }

  const Question& question_;
  const Inputs& inputs_;
  const DiskNeed& disk_need_;
  Diagnosis& diagnosis_;
};

}  // namespace

void look_at_own_engine(const Question& question, const Inputs& inputs, const DiskNeed& disk_need,
                        Diagnosis& diagnosis) {
  OwnEngine(question, inputs, disk_need, diagnosis).look();
}

}  // namespace underkeel::doctor
