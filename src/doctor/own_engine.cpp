#include "doctor/own_engine.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor/config_rules.h"
#include "doctor/own_alternatives.h"
#include "doctor/own_communication.h"
#include "doctor/own_disk.h"
#include "doctor/own_place.h"
#include "doctor/own_plan.h"
#include "doctor/own_run.h"
#include "doctor/run_facts.h"
#include "doctor/sample_rules.h"
#include "io/model_files.h"
#include "planner/fit.h"
#include "planner/planner.h"
#include "render/render.h"
#include "spec/examine_run.h"

namespace underkeel::doctor {
namespace {

using spec::Value;

class OwnEngine {
 public:
  OwnEngine(const Question& question, const Inputs& inputs, const DiskNeed& disk_need,
            Diagnosis& diagnosis)
      : question_(question), inputs_(inputs), disk_need_(disk_need), diagnosis_(diagnosis) {}

  void look() {
    auto words = own_run(question_, inputs_);
    if (!words) return;
    words_ = std::move(*words);
    auto readout = read_text({}, inputs_.ranks.count);
    if (!readout) return;  // the document's own finding says why
    bool is_refused = false;
    for (const spec::Problem& problem : readout->problems.all()) {
      // What a config alone does not give a run file will.
      if (!place_of(problem, inputs_).is_given) continue;
      tell(problem);
      is_refused = true;
    }
    const bool can_plan = inputs_.model && knows_the_machine();
    if (!readout->problems.empty()) {
      if (!is_refused) return;
      diagnosis_.underkeel.verdict = Verdict::fails;
      // Without what is not built yet, the rest of the run can still be planned.
      if (can_plan && all_not_built(readout->problems))
        plan_the_rest(readout->problems, readout->run);
      return;
    }
    for (const std::string& note : readout->run.notes) {
      // Beside a config alone nothing holds in place of a run file's defaults.
      if (!inputs_.run && note.find("(default)") != std::string::npos) continue;
      // What this engine reads and the Trainer refuses ends with whoever takes the files elsewhere.
      const bool is_liberty = note.find("strict JSON loader") != std::string::npos;
      diagnosis_.findings.push_back({.id = "underkeel-note",
                                     .severity = is_liberty ? Severity::warning : Severity::info,
                                     .engine = Engine::underkeel,
                                     .file = file_name(),
                                     .slots = {{"what", note}}});
    }
    if (tell_adapters() || !inputs_.model) return;
    if (can_plan) return plan(readout->run);
    diagnosis_.findings.push_back({.id = "underkeel-machine-unread",
                                   .severity = Severity::warning,
                                   .engine = Engine::underkeel,
                                   .file = inputs_.machine_file});
  }

 private:
  /// Of the folder that the run trains on, which `plan` and `train` refuse then.
  bool tell_adapters() {
    if (!inputs_.run || inputs_.model_folder.empty()) return false;
    io::FileSystem files;
    const auto refused = io::refuse_adapters(files, inputs_.model_folder.string());
    if (refused) return false;
    diagnosis_.underkeel.verdict = Verdict::fails;
    diagnosis_.findings.push_back({.id = "underkeel-refuses",
                                   .severity = Severity::error,
                                   .engine = Engine::underkeel,
                                   .file = file_name(),
                                   .key = "model_name_or_path",
                                   .slots = {{"key", "model_name_or_path"},
                                             {"what", refused.error().what},
                                             {"fix", refused.error().fix}}});
    return true;
  }

  std::string file_name() const {
    return inputs_.run ? inputs_.run->file : inputs_.deepspeed->file;
  }

  void tell(const spec::Problem& problem) {
    const bool is_later = problem.code == ErrorCode::unsupported;
    const auto [file, key, line, is_given] = place_of(problem, inputs_);
    const bool stops_theirs = inputs_.run && inputs_.run->file == file &&
                              trainer_stops_on(problem, key, inputs_.run->root);
    diagnosis_.findings.push_back(
        {.id = stops_theirs ? "run-file-refused"
               : is_later   ? "underkeel-cannot-yet"
                            : "underkeel-refuses",
         .severity = Severity::error,
         .engine = stops_theirs ? Engine::both : Engine::underkeel,
         .file = file,
         .key = key,
         .line = line,
         .slots = {
             {"key", key.empty() ? file : key}, {"what", problem.what}, {"fix", problem.fix}}});
  }

  Result<spec::RunReadout> read_text(const std::vector<std::string>& more,
                                     std::int64_t ranks) const {
    std::vector<std::string> changes = words_.changes;
    changes.insert(changes.end(), more.begin(), more.end());
    const spec::WorldSize world{
        ranks, inputs_.ranks.source.starts_with('@') ? "counted as 1" : inputs_.ranks.source};
    auto readout = spec::examine_run_text(words_.text, words_.file, changes, world);
    // The ranks asked about stand in the run as well, as `plan` and `train` have them: saves are counted with them.
    if (readout) readout->run.ranks = static_cast<int>(ranks);
    return readout;
  }

  /// None where a key is refused.
  std::optional<spec::RunConfig> read_again(const std::vector<std::string>& more,
                                            std::int64_t ranks) const {
    auto readout = read_text(more, ranks);
    if (!readout || !readout->problems.empty()) return std::nullopt;
    settle(readout->run);
    return std::move(readout->run);
  }

  static bool is_offload(const spec::Problem& problem) {
    return problem.key.find("offload") != std::string::npos;
  }
  static bool all_not_built(const spec::Problems& problems) {
    return std::all_of(
        problems.all().begin(), problems.all().end(),
        [](const spec::Problem& problem) { return problem.code == ErrorCode::unsupported; });
  }

  /// What holds without the keys that are refused: the memory of the run that is left, where that fits; without offload
  /// alone, what else fits.
  void plan_the_rest(const spec::Problems& problems, spec::RunConfig run) {
    const planner::FitQuestion question = fit_question(run);
    std::string keys;
    for (const spec::Problem& problem : problems.all())
      keys += fmt::format("{}`{}`", keys.empty() ? "" : ", ", place_of(problem, inputs_).key);
    if (std::all_of(problems.all().begin(), problems.all().end(), is_offload)) {
      append_alternatives(question);
      if (!has_offer()) tell_enough_ranks(question);
    }
    if (question.machine.gpus_per_node == 0 &&
        least_state_bytes(question, run.zero.stage) > state_limit(question))
      return;
    const plan::Plan plan = planner::make_plan_on(question);
    const planner::Room room = planner::room_of(run, question.machine, question.placement);
    if (planner::shortage_of(plan, room)) return;
    tell_host(plan, room, question,
              {{"keys", keys},
               {"which", problems.all().size() == 1 ? "@not-built.one" : "@not-built.several"},
               {"stage", fmt::format("{}", static_cast<int>(run.zero.stage))},
               {"device", device_text(plan, room)}});
  }

  bool has_offer() const {
    return std::any_of(diagnosis_.alternatives.begin(), diagnosis_.alternatives.end(),
                       [](const Alternative& row) {
                         return row.engine == Engine::underkeel && row.verdict == Verdict::runs;
                       });
  }

  ReadRun reader() const {
    return [this](const std::vector<std::string>& words, std::int64_t ranks) {
      return read_again(words, ranks);
    };
  }

  const Value& config() const {
    static const Value empty;
    return inputs_.deepspeed ? inputs_.deepspeed->root : empty;
  }
  /// Offload would take the optimizer off the device, and is not built: how many ranks do without it.
  /// Where some do, a cure in words: it is not among the rows.
  std::string tell_enough_ranks(const planner::FitQuestion& question) {
    const auto enough = enough_ranks(question, config_words(config()), reader());
    const double psi = static_cast<double>(spec::parameter_count(question.model));
    const double element = question.run.precision == spec::Precision::f32 ? 8 : 12;
    const double share = question.run.zero.stage >= 1
                             ? psi / static_cast<double>(question.placement.world_size)
                             : psi;
    const auto disk = own_disk(inputs_, question.run, disk_need_);
    if (!enough || (disk && !disk->fits())) {
      tell("underkeel-offload-not-built", Severity::info, "", {{"freed", amount(element * share)}});
      return "@no-cure";
    }
    std::vector<std::string> words = enough->words;
    if (disk) words.insert(words.end(), disk->words.begin(), disk->words.end());
    // The flag holds over the key.
    words.push_back(
        fmt::format("{}{}", question_.ranks ? "--ranks " : "underkeel.ranks=", enough->ranks));
    tell("underkeel-enough-ranks", Severity::info, "",
         {{"freed", amount(element * share)},
          {"ranks", fmt::format("{}", enough->ranks)},
          {"nodes", fmt::format("{}", enough->nodes)},
          {"device", size_text(enough->device_bytes)},
          {"allowed", enough->allowed_bytes > 0 ? capacity(enough->allowed_bytes) : "@unknown"},
          {"batch", fmt::format("{}", enough->global_batch)},
          {"place", place_of_nodes(question.machine, enough->nodes,
                                   inputs_.machine ? inputs_.machine_file : std::string())},
          {"words", fmt::format("{}", fmt::join(words, " "))}});
    return fmt::format("@[cure.more-ranks] {}", enough->ranks);
  }

  /// Arenas are taken before the weights are read and kept to the end: no phase needs more than another. `rest` says which
  /// run it is, where the one that was given is refused.
  void tell_host(const plan::Plan& plan, const planner::Room& room,
                 const planner::FitQuestion& question, std::vector<Slot> rest) {
    const std::int64_t needed = planner::needed_bytes(plan, room, std::nullopt);
    const std::int64_t outside = plan.overhead_bytes * planner::process_count(room.placement);
    std::vector<Slot> slots = {{"host", size_text(needed)},
                               {"arenas", size_text(needed - outside)},
                               {"processes", size_text(outside)},
                               {"of_rank", size_text(planner::further_rank_bytes(question))},
                               {"ring", size_text(staging_bytes(plan))}};
    const bool is_whole = rest.empty();
    std::move(rest.begin(), rest.end(), std::back_inserter(slots));
    tell(is_whole ? "underkeel-host" : "underkeel-host-without", Severity::info, "",
         std::move(slots));
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

  /// What the question says besides the files.
  void settle(spec::RunConfig& run) const {
    if (question_.device_budget_bytes) run.device_budget_bytes = question_.device_budget_bytes;
    if (question_.host_budget_bytes) run.host_budget_bytes = question_.host_budget_bytes;
    if (question_.data) {
      run.data.samples = question_.data->sizes;
    } else if (const auto described = described_evaluation(inputs_)) {
      // Of what is trained on nothing is known but the cut-off.
      const std::int64_t cutoff = run.data.cutoff_tokens;
      run.data.samples.emplace(spec::SampleSizes{
          .training = {.longest = cutoff, .sample_count = 1, .token_count = cutoff},
          .evaluation = {.longest = described->longest,
                         .sample_count = described->count,
                         .token_count = described->count * described->longest}});
    }
    spec::resolve_auto(run, inputs_.model->width);
  }

  planner::FitQuestion fit_question(spec::RunConfig& run) const {
    settle(run);
    const spec::HardwareSpec machine = machine_asked_of();
    return {.model = *inputs_.model,
            .run = run,
            .machine = machine,
            .placement = planner::spread_evenly(machine, inputs_.ranks.count, false)};
  }

  void append_alternatives(const planner::FitQuestion& question) {
    const auto disk = own_disk(inputs_, question.run, disk_need_);
    for (Alternative& row : own_alternatives(question, config_words(config()), reader())) {
      if (disk) take_disk(*disk, row);
      diagnosis_.alternatives.push_back(std::move(row));
    }
  }

  /// A model whose state alone is beyond what CPU ranks have is not planned: that takes longer than an answer may.
  bool is_hopeless(const planner::FitQuestion& question) {
    const double limit = state_limit(question);
    const double state = least_state_bytes(question, question.run.zero.stage);
    if (question.machine.gpus_per_node > 0 || state <= limit) return false;
    diagnosis_.underkeel.verdict = Verdict::fails;
    append_alternatives(question);
    if (!has_offer()) tell_enough_ranks(question);
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

  /// No model has so many layers, and an answer has no time for them.
  bool is_too_deep() {
    constexpr std::int64_t most_layers = 400;
    if (inputs_.model->layers <= most_layers) return false;
    tell("underkeel-not-planned", Severity::info, "num_hidden_layers",
         {{"layers", fmt::format("{}", inputs_.model->layers)}});
    return true;
  }

  void plan(spec::RunConfig run) {
    const planner::FitQuestion question = fit_question(run);
    if (is_hopeless(question) || is_too_deep()) return;
    const spec::HardwareSpec& machine = question.machine;
    const plan::Plan plan = planner::make_plan_on(question);
    const planner::Room room = planner::room_of(run, machine, question.placement);
    take_phases(plan, room, saves_of(run), diagnosis_.underkeel);
    const std::vector<planner::Shortage> shortages = planner::shortages_of(plan, room);
    const bool is_short = !shortages.empty();
    const bool only_long_ones_fail = is_short && short_samples_fit();
    std::string cure = "@no-cure";
    if (is_short) {
      append_alternatives(question);
      for (const Alternative& row : diagnosis_.alternatives)
        if (row.engine == Engine::underkeel && row.verdict == Verdict::runs) {
          cure = "@[cure.smallest]" + row.words;
          break;
        }
      if (!has_offer()) cure = tell_enough_ranks(question);
    }
    diagnosis_.underkeel.verdict = only_long_ones_fail ? Verdict::unknown
                                   : is_short          ? Verdict::fails
                                                       : Verdict::runs;
    if (!is_short) tell("underkeel-fits", Severity::info, "", slots_of(plan, room));
    // Each space that is short by itself; one cure mends them all.
    for (const planner::Shortage& shortage : shortages) {
      std::vector<Slot> slots = slots_of(plan, room);
      for (Slot& slot : slots_of(shortage, cure)) slots.push_back(std::move(slot));
      slots.push_back({"tokens", fmt::format("{}", run.data.cutoff_tokens)});
      tell(only_long_ones_fail ? "underkeel-lengths-not-known" : "underkeel-does-not-fit",
           only_long_ones_fail ? Severity::warning : Severity::error, "", std::move(slots));
    }
    tell_host(plan, room, question, {});
    if (auto communication = tell_communication(plan, file_name()))
      diagnosis_.findings.push_back(std::move(*communication));
    tell("underkeel-logits", Severity::info, "", logits_slots(plan, *inputs_.model, run, false));
    if (auto slots = logits_slots(plan, *inputs_.model, run, true); !slots.empty())
      tell("underkeel-evaluation-logits", Severity::info, "", std::move(slots));
    const bool resumes = question_.resumes || (inputs_.run && run_facts(inputs_.run->root).resumes);
    if (resumes) tell("underkeel-resume", Severity::info, "", resume_slots(plan));
    if (inputs_.run) tell_own_disk(inputs_, run, file_name(), disk_need_, diagnosis_);
  }

  /// Of a config alone, which says nothing of lengths.
  bool short_samples_fit() const {
    if (inputs_.run) return false;
    auto shorter = read_again({"cutoff_len=32"}, inputs_.ranks.count);
    if (!shorter) return false;
    const planner::FitQuestion question = fit_question(*shorter);
    if (least_state_bytes(question, shorter->zero.stage) > state_limit(question)) return false;
    return !planner::shortage_of(planner::make_plan_on(question),
                                 planner::room_of(*shorter, question.machine, question.placement));
  }

  void tell(std::string_view id, Severity severity, std::string_view key, std::vector<Slot> slots) {
    diagnosis_.findings.push_back({.id = std::string(id),
                                   .severity = severity,
                                   .engine = Engine::underkeel,
                                   .file = file_name(),
                                   .key = std::string(key),
                                   .slots = std::move(slots)});
  }
  static std::vector<Slot> slots_of(const plan::Plan& plan, const planner::Room& room) {
    return {{"device", size_text(plan.layout.size_bytes[index(plan::MemorySpace::device)])},
            {"gaps", gaps_text(plan)},
            {"host", size_text(planner::needed_bytes(plan, room, std::nullopt))}};
  }
  static std::vector<Slot> slots_of(const planner::Shortage& shortage, const std::string& cure) {
    return {{"space",
             fmt::format("@space.{}", shortage.space ? plan::name_of(*shortage.space) : "node")},
            {"needed", size_text(shortage.needed_bytes)},
            {"allowed", capacity(shortage.allowed_bytes)},
            {"cure", cure}};
  }

  /// As `plan` tells; a config alone does not say.
  render::Saves saves_of(const spec::RunConfig& run) const {
    if (!inputs_.run || !disk_need_) return render::Saves::on_the_way;
    const auto need = disk_need_(*inputs_.model, run);
    if (!need || need->save_count > 0) return render::Saves::on_the_way;
    return need->export_bytes > 0 ? render::Saves::at_the_end : render::Saves::never;
  }

  const Question& question_;
  const Inputs& inputs_;
  const DiskNeed& disk_need_;
  Diagnosis& diagnosis_;
  OwnRun words_ = {};
};

}  // namespace

void look_at_own_engine(const Question& question, const Inputs& inputs, const DiskNeed& disk_need,
                        Diagnosis& diagnosis) {
  OwnEngine(question, inputs, disk_need, diagnosis).look();
}

}  // namespace underkeel::doctor
