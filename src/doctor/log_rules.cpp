#include "doctor/log_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

namespace underkeel::doctor {
namespace {

/// What a log alone cannot tell, and doctor says of the files that it came from.
enum class Told { by_log, by_config, by_config_and_run };

/// An error that its words alone tell: all of them stand in the log.
struct Message {
  std::string_view id;
  std::string_view words;
  std::string_view more = {};
  Told told = Told::by_log;
};
constexpr std::array messages = {
    Message{"log-extra-key", "Extra inputs are not permitted", {}, Told::by_config},
    Message{"log-extra-key", "extra fields not permitted", {}, Told::by_config},
    Message{"log-mismatch", "mismatch TrainingArguments values", {}, Told::by_config_and_run},
    Message{"log-untested-optimizer", "untested ZeRO Optimizer"},
    Message{"log-scale-at-minimum", "loss scale already at minimum"},
    Message{"log-swap-file-short", "nbytes != file bytes"},
    Message{"log-swap-buffer-small", "buffer_size", "NVMe"},
    Message{"log-trace-order", "tracing error"},
    Message{"log-other-world-size", "ZeRORuntimeException", "world size"},
    Message{"log-empty-tensor", "torch.Size([0])"},
    Message{"log-torchrun", "FORCE_TORCHRUN"},
    Message{"log-device-map", "not compatible with `low_cpu_mem_usage=True`"},
    Message{"log-weights-only", "ZeroStageEnum", "weights_only"},
    Message{"log-auto-left", "auto", "value is ambiguous", Told::by_config},
    Message{"log-no-gradient", "does not require grad and does not have a grad_fn"},
    Message{"log-disk-full", "[Errno 28] No space left on device"},
    Message{"log-disk-full", "PytorchStreamWriter failed writing file"},
    Message{"log-paging-file", "WinError 1455"},
    Message{"log-segfault", "SIGSEGV"},
    Message{"log-json-comment", "json.decoder.JSONDecodeError", {}, Told::by_config},
};

/// "; the log's GPU has 85.0 GB", where the log says so.
std::string gpu_in_log(const OutOfMemory& error) {
  return error.total ? fmt::format("; @[log.gpu-has] {}", amount(*error.total)) : std::string();
}

std::string known_size(const std::optional<double>& bytes) {
  return bytes ? amount(*bytes) : "@unknown";
}

void tell(Diagnosis& diagnosis, const Document& document, std::string_view id, Severity severity,
          Certainty certainty, std::vector<Slot> slots) {
  diagnosis.findings.push_back({.id = std::string(id),
                                .severity = severity,
                                .certainty = certainty,
                                .engine = Engine::deepspeed,
                                .file = document.file,
                                .slots = std::move(slots)});
}

/// The phase of the forecast that the place belongs to.
Phase phase_of(Place place) {
  switch (place) {
    case Place::load:
      return Phase::load;
    case Place::resume:
      return Phase::resume;
    case Place::update:
      return Phase::update;
    case Place::evaluation:
      return Phase::evaluate;
    case Place::save:
      return Phase::save;
    case Place::unknown:
    case Place::forward:
    case Place::loss:
    case Place::backward:
      break;
  }
  return Phase::step;
}

/// "@[file.config], @[file.model]": what is not there of that which a forecast takes.
std::string missing_of(const Inputs& inputs) {
  std::string missing;
  const auto want = [&](bool is_there, std::string_view name) {
    if (!is_there) missing += fmt::format("{}@[file.{}]", missing.empty() ? "" : "@[and]", name);
  };
  want(inputs.deepspeed || inputs.run || inputs.has_unread, "config");
  want(inputs.model.has_value() || inputs.model_is_refused, "model");
  return missing;
}

/// What the forecast of the run beside the log has for the moment when it failed, or what is missing for one.
std::string beside_log(const OutOfMemory& error, Place place,
                       const std::optional<MemoryCase>& memory, bool has_other_ranks,
                       const Inputs& inputs, const Diagnosis& diagnosis) {
  if (!memory) {
    const std::string missing = missing_of(inputs);
    return missing.empty() ? "@log.files-first" : fmt::format("@[log.give] {}", missing);
  }
  if (has_other_ranks) return "@log.of-other-run";
  Phase phase = phase_of(place);
  if (place == Place::unknown) {
    // No phase is named; of all the one that needs most is told as such.
    phase = worst_phase(diagnosis.deepspeed, Space::device, phase);
    const Holding& most = *diagnosis.deepspeed.at(phase, Space::device);
    return fmt::format("@[log.unplaced] @[phase.{}] {}{}", name_of(phase),
                       span_of({most.low(), most.high()}), gpu_in_log(error));
  }
  // The files ask for no evaluation, no save or no resume: theirs is another run.
  if (!diagnosis.deepspeed.at(phase, Space::device))
    return fmt::format("@[log.no-such-phase] @[phase.{}]", name_of(phase));
  const Holding& holding = *diagnosis.deepspeed.at(phase, Space::device);
  return fmt::format("@[log.forecast] @[phase.{}] {}{}", name_of(phase),
                     span_of({holding.low(), holding.high()}), gpu_in_log(error));
}

void tell_out_of_memory(const OutOfMemory& error, Place place,
                        const std::optional<MemoryCase>& memory, bool has_other_ranks,
                        const Inputs& inputs, const Document& document, Diagnosis& diagnosis) {
  tell(diagnosis, document, "log-out-of-memory", Severity::error, Certainty::exact,
       {{"place", fmt::format("@place.{}", name_of(place))},
        {"gpu", error.gpu ? fmt::format("{}", *error.gpu) : "@unknown"},
        {"tried", known_size(error.tried)},
        {"total", known_size(error.total)},
        {"free", known_size(error.free)},
        {"allocated", known_size(error.allocated)},
        {"unused", known_size(error.reserved_unused)},
        {"next", beside_log(error, place, memory, has_other_ranks, inputs, diagnosis)}});
  if (error.of_others)
    tell(diagnosis, document, "log-other-processes", Severity::error, Certainty::exact,
         {{"others", amount(*error.of_others)},
          {"gpu", error.total ? amount(*error.total) : "@unknown"},
          {"tried", known_size(error.tried)}});
  if (!error.tried || !error.reserved_unused) return;
  // What torch holds in pieces and what is free would serve the request in one piece.
  const double free = error.free.value_or(0);
  const bool fragmented = *error.reserved_unused + free >= *error.tried;
  tell(diagnosis, document, fragmented ? "log-fragmented" : "log-not-fragmented",
       fragmented ? Severity::warning : Severity::info, Certainty::bound,
       {{"tried", amount(*error.tried)},
        {"unused", amount(*error.reserved_unused)},
        {"free", amount(free)}});
}

/// More was allocated than the run of these files ever holds: it was another run.
void tell_above_forecast(const OutOfMemory& error, const Document& document, Diagnosis& diagnosis) {
  const double most = on_device(diagnosis.deepspeed).high;
  if (!error.allocated || most <= 0 || *error.allocated <= 1.1 * most) return;
  tell(diagnosis, document, "log-above-forecast", Severity::warning, Certainty::estimate,
       {{"allocated", amount(*error.allocated)}, {"most", amount(most)}});
}

/// "256 != 8 * 1 * 8" behind DeepSpeed's batch assertion.
std::string equation_in(std::string_view text) {
  const std::size_t at = find_words(text, "train_batch_size is not equal to");
  if (at == std::string_view::npos) return {};
  const std::string_view line = text.substr(at, 300).substr(0, text.substr(at, 300).find('\n'));
  std::size_t begin = line.find("!=");
  if (begin == std::string_view::npos) return {};
  while (begin > 0 &&
         (std::isdigit(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == ' '))
    --begin;
  std::string equation;
  for (const char c : line.substr(begin))
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '*' || c == '!' || c == '=' || c == ' ')
      equation += c;
    else
      break;
  while (!equation.empty() && equation.front() == ' ') equation.erase(0, 1);
  while (!equation.empty() && equation.back() == ' ') equation.pop_back();
  return equation;
}

std::optional<std::int64_t> digits_after(std::string_view text, std::string_view words) {
  const std::size_t at = find_words(text, words);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t end = at + words.size(), begin = end;
  while (end < text.size() && end - begin < 18 &&
         std::isdigit(static_cast<unsigned char>(text[end])))
    ++end;
  return end == begin ? std::nullopt : spec::parse_integer(text.substr(begin, end - begin));
}

void tell_timeout(std::string_view text, const LogSummary& log, const Document& document,
                  Diagnosis& diagnosis) {
  if (!has(text, "Watchdog caught collective operation timeout") && !has(text, "NCCL timeout") &&
      !has(text, "Timed out waiting") && !has(text, "NCCL operations have failed or timed out") &&
      !has(text, "Timeout at NCCL work"))
    return;
  const auto limit_ms = digits_after(text, "Timeout(ms)=");
  std::string operation = "@unknown";
  if (const std::size_t at = find_words(text, "OpType="); at != std::string_view::npos) {
    operation.clear();
    for (const char c : text.substr(at + 7, 40)) {
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') break;
      operation += c;
    }
  }
  tell(diagnosis, document, log.was_killed ? "log-timeout-after-kill" : "log-timeout",
       Severity::error, Certainty::exact,
       {{"operation", operation.empty() ? "@unknown" : operation},
        {"limit", limit_ms ? fmt::format("{} s", *limit_ms / 1000) : "@unknown"}});
}

double step_margin(const MemoryCase& memory, const Forecast& forecast) {
  if (!memory.limits.device) return -1;
  return *memory.limits.device - forecast.at(Phase::step, Space::device)->high();
}

}  // namespace

std::vector<Cause> causes_after_save(const MemoryCase& memory, const Forecast& forecast,
                                     const std::optional<LogSummary>& log) {
  const DeepspeedSettings& s = memory.settings;
  const double psi = memory.sizes.trainable;
  const double share = s.stage == 0 ? psi : psi / memory.ranks;
  const bool offloads = s.optimizer != Offload::none;
  const Place place = log ? log->place : Place::unknown;
  std::vector<Cause> causes;

  // The moments exist from the first update on, or when a checkpoint is loaded.
  Cause moments{.id = offloads ? "after-save-moments-host" : "after-save-moments",
                .bytes = 8 * share};
  if (memory.resumes || (log && log->resumed)) moments.score += 4;
  if (log && log->last_save_step && *log->last_save_step <= 1) moments.score += 4;
  if (place == Place::update) moments.score += 3;
  if (log && log->last_step && *log->last_step > 2 && !log->resumed) moments.score -= 4;
  if (offloads) moments.score += log && log->was_killed ? 2 : -2;
  causes.push_back(moments);

  // What an evaluation leaves gathered; a save that follows releases it.
  if (s.stage == 3) {
    Cause evaluation{.id = "after-save-evaluation",
                     .bytes = std::min((s.is_16_bit ? 2 : 4) * memory.sizes.total(),
                                       (s.is_16_bit ? 2 : 4) * s.max_live)};
    if (!memory.run.evaluates) evaluation.score -= 3;
    if (log && log->evaluated_after_save) evaluation.score += 5;
    if (place == Place::forward || place == Place::evaluation) evaluation.score += 1;
    causes.push_back(evaluation);
  }

  // Pools of the allocator: gathers run on a side stream, what a save freed lies in another one's pool.
  Cause pools{.id = "after-save-allocator"};
  if (log && log->out_of_memory && log->out_of_memory->reserved_unused) {
    pools.bytes = *log->out_of_memory->reserved_unused;
    const double tried = log->out_of_memory->tried.value_or(0);
    pools.score += pools.bytes >= tried ? 5 : -2;
  }
  if (s.stage == 3 && s.overlap_comm) pools.score += 1;
  causes.push_back(pools);

  if (s.stage == 3 && s.gathers_on_save) {
    Cause gather{.id = "after-save-gather",
                 .bytes = (s.is_16_bit ? 2 : 4) * memory.sizes.largest_tensor};
    gather.score += place == Place::save ? 4 : -1;
    causes.push_back(gather);
  }

  const double whole = (s.is_16_bit ? 2 : 4) * memory.sizes.total();
  Cause host{.id = "after-save-host", .bytes = whole};
  if (log && log->was_killed) host.score += 5;
  if (memory.limits.host && forecast.at(Phase::save, Space::host) &&
      forecast.at(Phase::save, Space::host)->high() > *memory.limits.host)
    host.score += 2;
  if (log && log->out_of_memory && !log->was_killed) host.score -= 3;
  if (s.stage == 3 && !s.gathers_on_save && !memory.run.is_lora) host.score -= 1;
  causes.push_back(host);

  // What takes less than is left cannot be the cause on a device.
  const double margin = step_margin(memory, forecast);
  for (Cause& cause : causes)
    if (cause.id != "after-save-host" && cause.id != "after-save-moments-host" && margin > 0 &&
        cause.bytes < margin)
      cause.score -= 3;
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.score > b.score; });
  return causes;
}

namespace {

void tell_causes(const MemoryCase& memory, const std::optional<LogSummary>& log,
                 const Document& document, Diagnosis& diagnosis) {
  const double margin = step_margin(memory, diagnosis.deepspeed);
  // What does not fit before any save needs no other cause.
  if (!log && memory.limits.device && margin < 0)
    tell(diagnosis, document, "after-save-never-fits", Severity::warning, Certainty::estimate,
         {{"beyond", amount(-margin)}});
  int rank = 0;
  for (const Cause& cause : causes_after_save(memory, diagnosis.deepspeed, log))
    tell(diagnosis, document,
         cause.id == "after-save-allocator" && cause.bytes == 0 ? "after-save-allocator-unseen"
                                                                : cause.id,
         Severity::warning, Certainty::estimate,
         {{"rank", fmt::format("{}", ++rank)},
          {"bytes", amount(cause.bytes)},
          {"margin", !memory.limits.device ? "@unknown" : amount(std::max(0.0, margin))},
          {"likely", cause.score > 2    ? "@likely.yes"
                     : cause.score >= 0 ? "@likely.maybe"
                                        : "@likely.no"}});
}

}  // namespace

namespace {

// Of a card that is named by its round size torch shows a little less.
constexpr double same_gpu = 0.05;

/// The run as its log has it: on the GPU that the log names, whatever machine the other answers are for.
std::optional<MemoryCase> case_in_log(std::optional<MemoryCase> memory, const LogSummary& log,
                                      const Document& document, Diagnosis& diagnosis) {
  if (!memory || !log.out_of_memory || !log.out_of_memory->total) return memory;
  const double total = *log.out_of_memory->total;
  if (const auto limit = memory->limits.device;
      limit && std::abs(*limit - total) > same_gpu * *limit)
    tell(diagnosis, document, "log-of-another-gpu", Severity::info, Certainty::exact,
         {{"total", capacity(static_cast<std::int64_t>(total))},
          {"limit", capacity(static_cast<std::int64_t>(*limit))}});
  memory->limits.device = total;
  return memory;
}

/// What to do next about a message: the files that would tell more, or the findings on those that are there.
std::string next_of(const Message& message, const Inputs& inputs) {
  const bool has_config = inputs.deepspeed || inputs.has_unread;
  const bool is_given =
      has_config && (message.told == Told::by_config || inputs.run || inputs.has_unread);
  return fmt::format("@{}.{}", message.id, is_given ? "given" : "ask");
}

}  // namespace

namespace {

/// Ranks or GPUs in the log that the run at hand does not have.
bool tell_other_ranks(const LogSummary& log, const Inputs& inputs, const Document& document,
                      Diagnosis& diagnosis) {
  std::int64_t ranks = log.ranks.value_or(0);
  if (log.out_of_memory && log.out_of_memory->gpu)
    ranks = std::max(ranks, *log.out_of_memory->gpu + 1);
  if (ranks <= inputs.ranks.count) return false;
  tell(diagnosis, document, "log-of-other-ranks", Severity::warning, Certainty::exact,
       {{"in_log", fmt::format("{}", ranks)},
        {"ranks", fmt::format("{}", inputs.ranks.count)},
        {"source", inputs.ranks.source}});
  return true;
}

/// "; as much as the run's optimizer file, 80.9 GB": the term of the host, in the phase of the place, that is as large as
/// what was refused; one of Adam's two moments has a name of its own.
std::string term_of_size(const Forecast& forecast, Place place, std::optional<double> size) {
  const auto& holding = forecast.at(phase_of(place), Space::host);
  if (!size || !holding || place == Place::unknown) return "";
  const auto is_as_large = [&](double bytes) {
    constexpr double same = 0.02;
    return std::abs(bytes - *size) <= same * *size;
  };
  // The first update makes the moments, one after the other; master weights are as large as one of them, and there already.
  for (const Term& term : holding->terms)
    if (term.name == "moments" && is_as_large(term.high_bytes / 2))
      return fmt::format("@[log.half-of] @[term.moments], {}", amount(term.high_bytes));
  for (const Term& term : holding->terms)
    if (is_as_large(term.high_bytes))
      return fmt::format("@[log.as-much-as] @[term.{}], {}", term.name, amount(term.high_bytes));
  return "";
}

void tell_refusals(const LogSummary& log, const Document& document, Diagnosis& diagnosis) {
  const std::string place = fmt::format("@place.{}", name_of(log.place));
  if (log.cuda_refused && !log.out_of_memory)
    tell(diagnosis, document, "log-cuda-refused", Severity::error, Certainty::bound,
         {{"place", place}});
  if (log.host_refused)
    tell(diagnosis, document, "log-host-refused", Severity::error, Certainty::exact,
         {{"tried", known_size(log.host_tried)},
          {"place", fmt::format("@place.{}", name_of(log.host_place))},
          {"is", term_of_size(diagnosis.deepspeed, log.host_place, log.host_tried)}});
  if (log.lacks_shared_memory)
    tell(diagnosis, document, "log-shared-memory", Severity::error, Certainty::exact, {});
}

}  // namespace

void look_at_logs(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  const auto memory = memory_case(question, inputs);
  bool told_causes = false;
  for (const Document& document : inputs.others) {
    if (document.kind != FileKind::log) continue;
    const std::string_view text = document.text;
    const LogSummary log = read_log(text);
    const std::size_t told_before = diagnosis.findings.size();
    const bool has_other_ranks = memory && tell_other_ranks(log, inputs, document, diagnosis);
    if (log.out_of_memory)
      tell_out_of_memory(*log.out_of_memory, log.place, memory, has_other_ranks, inputs, document,
                         diagnosis);
    tell_refusals(log, document, diagnosis);
    if (log.failed_lock)
      tell(diagnosis, document, "log-failed-lock", Severity::error, Certainty::exact,
           {{"pinned", memory && diagnosis.deepspeed.at(Phase::step, Space::pinned_host)
                           ? amount(diagnosis.deepspeed.at(Phase::step, Space::pinned_host)->low())
                           : std::string("@unknown")}});
    if (log.was_killed) {
      Phase phase = phase_of(log.last_seen);
      if (!memory || !diagnosis.deepspeed.at(phase, Space::host)) phase = Phase::step;
      if (memory && log.last_seen == Place::unknown)
        phase = worst_phase(diagnosis.deepspeed, Space::host, Phase::step);
      const auto& holding = diagnosis.deepspeed.at(phase, Space::host);
      const Holding* host = memory && holding ? &*holding : nullptr;
      tell(diagnosis, document, "log-killed", Severity::error, Certainty::bound,
           {{"last", fmt::format("@last.{}", name_of(log.last_seen))},
            {"phase", fmt::format("@phase.{}", name_of(phase))},
            {"host", host ? amount(host->low()) : std::string("@unknown")},
            {"limit", memory && memory->limits.host
                          ? capacity(static_cast<std::int64_t>(*memory->limits.host))
                          : std::string("@unknown")}});
    }
    tell_timeout(text, log, document, diagnosis);
    if (const std::string equation = equation_in(text); !equation.empty())
      tell(diagnosis, document, "log-batch-equation", Severity::error, Certainty::exact,
           {{"equation", equation}});
    std::string_view last;
    for (const Message& message : messages) {
      if (message.id == last || !has(text, message.words) ||
          (!message.more.empty() && !has(text, message.more)))
        continue;
      last = message.id;
      std::vector<Slot> slots;
      if (message.told != Told::by_log) slots.push_back({"next", next_of(message, inputs)});
      tell(diagnosis, document, message.id, Severity::error, Certainty::exact, std::move(slots));
    }
    const auto in_log = case_in_log(memory, log, document, diagnosis);
    if (log.keeps_logits)
      tell(diagnosis, document, "log-kept-logits", Severity::error, Certainty::bound, {});
    if (memory && !has_other_ranks && log.out_of_memory)
      tell_above_forecast(*log.out_of_memory, document, diagnosis);
    if (in_log && log.after_save && !told_causes) {
      tell_causes(*in_log, log, document, diagnosis);
      told_causes = true;
    }
    if (diagnosis.findings.size() == told_before)
      tell(diagnosis, document, "log-without-error", Severity::info, Certainty::exact, {});
  }
  if (memory && question.after_save && !told_causes)
    tell_causes(*memory, std::nullopt, inputs.deepspeed ? *inputs.deepspeed : *inputs.run,
                diagnosis);
}

}  // namespace underkeel::doctor
