#include "doctor/doctor.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "doctor/accelerate_rules.h"
#include "doctor/advice_rules.h"
#include "doctor/config_rules.h"
#include "doctor/conflict_rules.h"
#include "doctor/data_rules.h"
#include "doctor/disk.h"
#include "doctor/folder_rules.h"
#include "doctor/key_rules.h"
#include "doctor/log_rules.h"
#include "doctor/memory_rules.h"
#include "doctor/own_engine.h"
#include "doctor/packing_rules.h"
#include "doctor/run_facts.h"
#include "doctor/sample_rules.h"

namespace underkeel::doctor {
namespace {

void append(std::vector<Finding>& findings, std::vector<Finding> more) {
  findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

bool concerns(const Finding& finding, Engine engine) {
  return finding.engine == Engine::both || finding.engine == engine;
}

bool has_error(const std::vector<Finding>& findings, Engine engine) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity == Severity::error && concerns(finding, engine);
  });
}

/// An error of the files that would run: a log tells of files as they were.
bool has_error_now(const std::vector<Finding>& findings, Engine engine) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity == Severity::error && concerns(finding, engine) &&
           !finding.id.starts_with("log-");
  });
}

/// Which accumulation keeps the global batch where other ranks run, for those who go on with more or fewer machines.
void tell_other_ranks(const Inputs& inputs, std::vector<Finding>& findings) {
  const RunFacts run = run_facts(inputs.run->root);
  const std::int64_t ranks = inputs.ranks.count;
  // A config without it has one step with DeepSpeed, which is told by itself.
  if (inputs.deepspeed && steps_are_left_out(inputs.deepspeed->root) && run.accumulation_steps > 1)
    return;
  if (run.micro_batch <= 0 || run.accumulation_steps <= 0 || run.accumulation_steps > 1 << 20)
    return;
  const std::int64_t rounds = run.accumulation_steps * ranks;
  std::string others;
  int count = 0;
  for (std::int64_t other = std::min(rounds, 8 * ranks); other >= 1 && count < 8; --other) {
    if (rounds % other != 0 || other == ranks) continue;
    others += fmt::format("{}{}: {}", others.empty() ? "" : ", ", other, rounds / other);
    ++count;
  }
  if (others.empty()) return;
  findings.push_back({.id = "batch-on-other-ranks",
                      .file = inputs.run->file,
                      .key = "gradient_accumulation_steps",
                      .slots = {{"global", fmt::format("{}", run.micro_batch * rounds)},
                                {"micro", fmt::format("{}", run.micro_batch)},
                                {"steps", fmt::format("{}", run.accumulation_steps)},
                                {"ranks", fmt::format("{}", ranks)},
                                {"others", others}}});
}

/// Each rank needs a GPU of its own, with either engine.
void tell_too_many_ranks(const Inputs& inputs, std::vector<Finding>& findings) {
  if (!inputs.machine || inputs.machine->gpus_per_node == 0) return;
  const std::int64_t on_node = inputs.machine->gpus_per_node;
  const std::int64_t gpus = inputs.machine->nodes * on_node;
  if (inputs.ranks.count <= gpus) return;
  findings.push_back(
      {.id = "more-ranks-than-gpus",
       .severity = Severity::error,
       .file = inputs.machine_file,
       .key = "gpus_per_node",
       .slots = {{"ranks", fmt::format("{}", inputs.ranks.count)},
                 {"source", inputs.ranks.source},
                 {"gpus", fmt::format("{}", gpus)},
                 {"on_node", fmt::format("{}", on_node)},
                 {"nodes", fmt::format("{}", (inputs.ranks.count + on_node - 1) / on_node)}}});
}

/// A DeepSpeed config that no Trainer reads for DeepSpeed is refused for a key that it has twice.
void settle_repeated_keys(const Inputs& inputs, std::vector<Finding>& findings) {
  if (inputs.run || inputs.accelerate || inputs.has_unread) return;
  for (Finding& finding : findings)
    if (finding.id == "key-given-twice") {
      finding.id = "key-given-twice-alone";
      finding.severity = Severity::error;
    }
}

/// A config that only hjson reads is none for the Trainer or accelerate.
void settle_loose_json(const Inputs& inputs, std::vector<Finding>& findings) {
  if (!inputs.deepspeed || (!inputs.run && !inputs.accelerate)) return;
  for (Finding& finding : findings)
    if (finding.id == "json-not-strict" && finding.file == inputs.deepspeed->file)
      finding.severity = Severity::error;
}

/// A model and a machine without a run: what was read, where nothing else is told of them.
void tell_described(const Inputs& inputs, std::vector<Finding>& findings) {
  if (inputs.model)
    findings.push_back(
        {.id = "model-described",
         .file = inputs.model_file,
         .slots = {
             {"architecture", inputs.model->architecture},
             {"layers", fmt::format("{}", inputs.model->layers)},
             {"parameters", fmt::format("{}", spec::parameter_count(*inputs.model))},
             {"bytes", amount(2 * static_cast<double>(spec::parameter_count(*inputs.model)))}}});
  if (!inputs.machine) return;
  const spec::HardwareSpec& machine = *inputs.machine;
  findings.push_back(
      {.id = machine.gpus_per_node > 0 ? "machine-described" : "machine-described-without-gpus",
       .file = inputs.machine_file,
       .slots = {{"nodes", fmt::format("{}", machine.nodes)},
                 {"gpus", fmt::format("{}", machine.gpus_per_node)},
                 {"gpu", capacity(machine.gpu_mem_bytes)},
                 {"host", capacity(machine.host_ram_bytes)}}});
}

/// Whether DeepSpeed stops on a key of zero_optimization: what stands there is then no stage, offload or bucket of its own.
bool tell_refused_zero(const Inputs& inputs, const std::vector<Finding>& of_keys,
                       std::vector<Finding>& findings) {
  const auto refused = std::find_if(of_keys.begin(), of_keys.end(), [](const Finding& each) {
    return each.severity == Severity::error && each.key.starts_with("zero_optimization");
  });
  if (refused == of_keys.end()) return false;
  if (inputs.model)
    findings.push_back({.id = "memory-not-judged",
                        .severity = Severity::warning,
                        .engine = Engine::deepspeed,
                        .file = inputs.deepspeed->file,
                        .key = refused->key,
                        .line = refused->line,
                        .slots = {{"key", refused->key}}});
  return true;
}

/// What is offered against a lack of memory is taken only where nothing else stops the engine.
void withhold_offers(Diagnosis& diagnosis, Engine engine) {
  const auto is_cured = [](const Finding& finding) {
    // Rows are judged by what they write too.
    const bool is_of_disk = finding.id == "deepspeed-disk-does-not-fit" ||
                            finding.id == "underkeel-disk-does-not-fit" ||
                            finding.id == "disk-fails-by-export" ||
                            finding.id == "final-folder-does-not-fit";
    return is_of_disk || finding.id == "deepspeed-does-not-fit" ||
           finding.id.starts_with("underkeel-offload") ||
           (finding.id == "underkeel-cannot-yet" &&
            finding.key.find("offload") != std::string::npos) ||
           finding.id == "underkeel-does-not-fit" || finding.id == "underkeel-state-does-not-fit";
  };
  const bool stops_otherwise = std::any_of(
      diagnosis.findings.begin(), diagnosis.findings.end(), [&](const Finding& finding) {
        return finding.severity == Severity::error && concerns(finding, engine) &&
               !finding.id.starts_with("log-") && !is_cured(finding);
      });
  if (!stops_otherwise) return;
  std::erase_if(diagnosis.alternatives,
                [&](const Alternative& row) { return row.engine == engine; });
  for (Finding& finding : diagnosis.findings)
    for (Slot& slot : finding.slots)
      if (finding.engine == engine && slot.name == "cure" && finding.id.ends_with("fit") &&
          finding.id.find("disk") == std::string::npos && finding.id != "final-folder-does-not-fit")
        slot.text = "@errors-first";
}

/// Of many findings of one kind the first are kept, and one tells how many more there were.
void count_repeated(std::vector<Finding>& findings) {
  constexpr std::int64_t most_of_file = 20, most_of_all = 100;
  using Kind = std::tuple<std::string, Severity, Engine>;
  struct Counts {
    std::map<std::string, std::int64_t> of_file;
    std::int64_t kept = 0, left_out = 0;
  };
  std::map<Kind, Counts> kinds;
  std::erase_if(findings, [&](const Finding& finding) {
    Counts& counts = kinds[{finding.id, finding.severity, finding.engine}];
    const bool is_kept =
        counts.kept < most_of_all && ++counts.of_file[finding.file] <= most_of_file;
    ++(is_kept ? counts.kept : counts.left_out);
    return !is_kept;
  });
  for (const auto& [kind, counts] : kinds) {
    const auto& [id, severity, engine] = kind;
    if (counts.left_out == 0) continue;
    const auto last = std::find_if(findings.rbegin(), findings.rend(), [&](const Finding& each) {
      return each.id == id && each.severity == severity && each.engine == engine;
    });
    Finding more{.id = "more-of-a-kind",
                 .severity = severity,
                 .engine = engine,
                 .file = counts.of_file.size() == 1 ? last->file : "",
                 .slots = {{"count", fmt::format("{}", counts.left_out)}, {"kind", id}}};
    findings.insert(last.base(), std::move(more));
  }
}

}  // namespace

Diagnosis diagnose(const Question& question) {
  return diagnose(question, {});
}

Diagnosis diagnose(const Question& question, const DiskNeed& disk_need) {
  std::vector<Finding> findings;
  Inputs inputs = gather(question, findings);
  return diagnose(question, std::move(inputs), std::move(findings), disk_need);
}

Diagnosis diagnose(const Question& question, Inputs inputs, std::vector<Finding> gathered,
                   const DiskNeed& disk_need) {
  Diagnosis diagnosis{.findings = std::move(gathered)};
  diagnosis.is_of_run = inputs.run || inputs.deepspeed || inputs.has_unread;
  std::vector<Finding>& findings = diagnosis.findings;
  settle_repeated_keys(inputs, findings);
  settle_loose_json(inputs, findings);
  if (inputs.deepspeed || inputs.run)
    findings.push_back({.id = "ranks-counted",
                        .slots = {{"ranks", fmt::format("{}", inputs.ranks.count)},
                                  {"on_node", fmt::format("{}", inputs.ranks.on_node)},
                                  {"source", inputs.ranks.source}}});
  if (inputs.has_unread && (inputs.deepspeed || inputs.run || inputs.model))
    findings.push_back({.id = "unread-not-compared", .severity = Severity::warning});
  tell_too_many_ranks(inputs, findings);
  if (inputs.run) tell_other_ranks(inputs, findings);
  append(findings, check_conflicts(inputs));
  if (inputs.accelerate) append(findings, check_accelerate(*inputs.accelerate));
  if (inputs.deepspeed) {
    const std::vector<Finding> of_keys =
        check_keys({.config = *inputs.deepspeed,
                    .auto_is_filled_in = inputs.run || inputs.accelerate || inputs.has_unread,
                    .is_compared = inputs.run.has_value(),
                    .passes_accelerate = inputs.run || inputs.accelerate});
    inputs.zero_is_refused = tell_refused_zero(inputs, of_keys, findings);
    append(findings, of_keys);
    append(findings, check_config(inputs));
  }
  check_quantisation(inputs, findings);
  check_run_by_itself(inputs, findings);
  append(findings, check_packing(inputs));
  look_at_memory(question, inputs, diagnosis);
  look_at_samples(question, inputs, diagnosis);
  look_at_data_files(question, inputs, diagnosis);
  look_at_folders(question, inputs, diagnosis);
  look_at_logs(question, inputs, diagnosis);
  look_at_advice(question, inputs, diagnosis);
  look_at_own_engine(question, inputs, disk_need, diagnosis);
  if (!diagnosis.is_of_run) tell_described(inputs, findings);
  withhold_offers(diagnosis, Engine::deepspeed);
  withhold_offers(diagnosis, Engine::underkeel);
  if (has_error_now(findings, Engine::deepspeed)) diagnosis.deepspeed.verdict = Verdict::fails;
  if (has_error_now(findings, Engine::underkeel)) diagnosis.underkeel.verdict = Verdict::fails;
  count_repeated(findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return diagnosis;
}

int exit_code_of(const Diagnosis& diagnosis, Engine engine) {
  const Verdict verdict =
      engine == Engine::deepspeed ? diagnosis.deepspeed.verdict : diagnosis.underkeel.verdict;
  return verdict == Verdict::fails || has_error(diagnosis.findings, engine) ? 2 : 0;
}

}  // namespace underkeel::doctor
