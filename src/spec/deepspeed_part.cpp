#include "spec/deepspeed_part.h"

#include <algorithm>

#include "base/printable.h"

namespace underkeel::spec {
namespace {

/// Keys of zero_optimization that are read below by name.
constexpr std::array<std::string_view, 17> zero_names = {
    "stage",
    "overlap_comm",
    "reduce_bucket_size",
    "allgather_bucket_size",
    "offload_optimizer",
    "offload_param",
    "cpu_offload",
    "cpu_offload_param",
    "cpu_offload_use_pin_memory",
    "prefetch_bucket_size",
    "stage3_prefetch_bucket_size",
    "stage3_param_persistence_threshold",
    "stage3_model_persistence_threshold",
    "stage3_max_live_parameters",
    "stage3_max_reuse_distance",
    "stage3_gather_16bit_weights_on_model_save",
    "stage3_gather_fp16_weights_on_model_save"};

bool is_in(std::string_view key, std::span<const RunKey> table) {
  return std::any_of(table.begin(), table.end(),
                     [&](const RunKey& candidate) { return candidate.key == key; });
}

}  // namespace

bool is_auto(const Value* value) {
  return value != nullptr && value->kind == ValueKind::text && value->text == "auto";
}

Fields DeepspeedPart::fields_of(const Value& mapping, const std::string& section) {
  return Fields(mapping, fmt::format("{}: {}", source_.name, section), problems_,
                QuotedValues::accept);
}
void DeepspeedPart::finish(const Fields& fields) {
  for (const std::string& note : fields.notes()) run_.notes.push_back(note);
}
void DeepspeedPart::remember(const Value* value, const std::string& key, std::string text) {
  run_.provenance.push_back(
      {"deepspeed." + key, std::move(text),
       value != nullptr && value->overridden ? "command line" : source_.name});
}

const Value* DeepspeedPart::section(Fields& fields, std::string_view key) {
  const Value* value = fields.take(key);
  if (value == nullptr || value->kind == ValueKind::null) return nullptr;
  if (value->kind == ValueKind::mapping) return value;
  fields.problem(key, fmt::format("a mapping is wanted, {} was found", shown(*value)));
  return nullptr;
}

Value DeepspeedPart::without_auto(const Value& mapping) {
  Value copy = mapping;
  for (Entry& entry : copy.entries) {
    if (is_auto(&entry.value)) entry.value = Value{};
    if (entry.value.kind == ValueKind::mapping) entry.value = without_auto(entry.value);
  }
  return copy;
}

void DeepspeedPart::sort_table(Fields& fields, std::span<const RunKey> table,
                               std::string_view section_name) {
  for (const RunKey& key : table) {
    const Value* value = fields.take(key.key);
    if (value == nullptr) continue;
    if (key.use == KeyUse::refused) {
      if (!is_neutral(*value, key.neutral))
        fields.problem(key.key, fmt::format("{} is not honoured: {}", shown(*value), key.what), {},
                       ErrorCode::unsupported);
    } else if (key.what.empty()) {
      silent_.push_back(fmt::format("{}{}", section_name, key.key));
    } else {
      run_.notes.push_back(
          fmt::format("{}: {}{} has no effect: {}", source_.name, section_name, key.key, key.what));
    }
  }
}

void DeepspeedPart::refuse_unknown(Fields& fields, std::string_view section_name) {
  const bool is_top = section_name.empty();
  const std::vector<std::string> known = fields.asked();
  const bool loss_scale_home = section_name == "fp16";
  fields.refuse_unread([&](const Entry& entry) -> Fields::Refusal {
    const std::string_view key = entry.key;
    std::string fix;
    const bool of_zero = std::find(zero_names.begin(), zero_names.end(), key) != zero_names.end() ||
                         is_in(key, deepspeed_zero_keys());
    const bool of_top = is_in(key, deepspeed_keys()) || key == "gradient_clipping" ||
                        key == "optimizer" || key == "scheduler" || key == "fp16" ||
                        key == "bf16" || key == "train_batch_size";
    if (is_top && of_zero)
      fix = fmt::format(
          "it belongs in zero_optimization; DeepSpeed passes over it here without a word");
    else if (!is_top && of_top)
      fix = "it belongs at the top level";
    else if (!loss_scale_home && is_top &&
             std::find(loss_scale_keys.begin(), loss_scale_keys.end(), key) !=
                 loss_scale_keys.end())
      fix = "it belongs in fp16";
    else if (const std::string nearest = nearest_word(key, known); !nearest.empty())
      fix = fmt::format("the nearest is `{}`{}", nearest,
                        is_top ? "; DeepSpeed passes over unknown keys here without a word" : "");
    return {fmt::format("unknown key `{}`", printable(key)), fix};
  });
}

}  // namespace underkeel::spec
