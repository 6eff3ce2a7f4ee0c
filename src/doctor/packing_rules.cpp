#include "doctor/packing_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "doctor/document.h"

namespace underkeel::doctor {
namespace {

// What LLaMA-Factory's collator rounds the length of a micro-batch up to, in training.
constexpr std::int64_t collated_multiple = 8;

bool is_text(const spec::Value& run) {
  return text_at(run, "stage") == "pt";
}

bool is_neat(const spec::Value& run) {
  return truth_at(run, "neat_packing").value_or(false);
}

/// Underkeel's samples of a pack see one another.
bool is_shared(const spec::Value& run) {
  return text_at(run, "underkeel.packing_attention") == "shared";
}

bool has_flash_attention(const spec::Value& run) {
  return text_at(run, "flash_attn") == "fa2";
}

}  // namespace

bool is_packed(const spec::Value& run) {
  return is_neat(run) || truth_at(run, "packing").value_or(is_text(run));
}

std::int64_t padded_positions(const spec::Value& run, std::optional<std::int64_t> longest) {
  const std::int64_t cutoff = run_facts(run).cutoff_tokens;
  const bool asks_for_packs = is_neat(run) || truth_at(run, "packing").value_or(false);
  // A token of cutoff_len is left to padding as soon as packing is asked for.
  const std::int64_t filled = longest.value_or(asks_for_packs ? cutoff - 1 : cutoff);
  if (is_text(run)) return filled;
  if (!asks_for_packs)
    return (filled + collated_multiple - 1) / collated_multiple * collated_multiple;
  // Flash attention of separate samples takes them without the padding.
  return is_neat(run) && has_flash_attention(run) ? filled : cutoff;
}

namespace {

/// "6 samples with 60 tokens, 6 with 32, ...".
std::string first_packs(const PackFigures& packs, std::int64_t count) {
  std::string text;
  for (std::size_t pack = 0; pack < packs.samples.size(); ++pack)
    text += pack == 0 ? fmt::format("{}@[packs.{}-with]{}@[packs.tokens]", packs.samples[0],
                                    packs.samples[0] == 1 ? "sample" : "samples", packs.filled[0])
                      : fmt::format(", {}@[packs.with]{}", packs.samples[pack], packs.filled[pack]);
  return text + (count > static_cast<std::int64_t>(packs.samples.size()) ? ", ..." : "");
}

}  // namespace

void tell_packs(const DataFigures& data, const Inputs& inputs, Diagnosis& diagnosis) {
  if (!inputs.run || !data.packs || data.samples == 0) return;
  const spec::Value& run = inputs.run->root;
  const RunFacts facts = run_facts(run);
  const PackFigures& packs = *data.packs;
  const std::int64_t longest = data.sizes.training.longest;
  const auto count = [](std::int64_t value) { return fmt::format("{}", value); };
  Finding finding{.id = is_text(run) ? "data-blocks" : "data-packs",
                  .file = inputs.run->file,
                  .key = "cutoff_len",
                  .slots = {{"samples", count(packs.records)},
                            {"packs", count(data.samples)},
                            {"tokens", count(packs.tokens)},
                            {"longest", count(longest)},
                            {"micro", count(facts.micro_batch)},
                            {"padded", count(padded_positions(run, longest))},
                            {"met", count(data.sizes.training.of(facts.micro_batch))}}};
  if (!is_text(run)) {
    const std::int64_t places = data.samples * facts.cutoff_tokens;
    const std::vector<Slot> of_packs = {
        {"positions", count(facts.cutoff_tokens)},
        {"first", first_packs(packs, data.samples)},
        {"fill", fmt::format("{:.1f}%", 100.0 * static_cast<double>(packs.tokens) /
                                            static_cast<double>(places))},
        {"attention", is_shared(run) ? "@packs.shared" : "@packs.separate"}};
    finding.slots.insert(finding.slots.end(), of_packs.begin(), of_packs.end());
  }
  diagnosis.findings.push_back(std::move(finding));
}

std::vector<Finding> check_packing(const Inputs& inputs) {
  if (!inputs.run) return {};
  const spec::Value& run = inputs.run->root;
  if (is_text(run) || !is_packed(run)) return {};
  // Restarting positions are taken for packs in a micro-batch of one alone.
  const bool is_kept_apart =
      is_neat(run) || (has_flash_attention(run) && run_facts(run).micro_batch == 1);
  const std::string_view key = is_neat(run) ? "neat_packing" : "packing";
  return {
      {.id = is_kept_apart ? "packs-kept-apart" : "packs-see-one-another",
       .severity = is_kept_apart ? Severity::info : Severity::warning,
       .engine = Engine::deepspeed,
       .file = inputs.run->file,
       .key = std::string(key),
       .line = line_of(run, key),
       .slots = {{"ours", is_shared(run) == !is_kept_apart
                              ? (is_kept_apart ? "@packs.apart-too" : "@packs.shared-too")
                              : (is_kept_apart ? "@packs.shared-here" : "@packs.apart-here")}}}};
}

}  // namespace underkeel::doctor
