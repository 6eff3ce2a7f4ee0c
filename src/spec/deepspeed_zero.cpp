// zero_optimization: the stage, the bounds for the planner, what saves hold, and offload.

#include "spec/deepspeed_part.h"

namespace underkeel::spec {
namespace {

class ZeroReader : DeepspeedPart {
 public:
  using DeepspeedPart::DeepspeedPart;

  void read(Fields& top) {
    const Value* value = top.take("zero_optimization");
    ZeroConfig& zero = run_.zero;
    if (value != nullptr && value->kind == ValueKind::boolean) {
      zero.stage = value->boolean ? 1 : 0;
      run_.notes.push_back(fmt::format("zero_optimization: {} is the old spelling of stage {}",
                                       value->boolean, zero.stage));
      remember(value, "zero_optimization.stage", fmt::format("{}", zero.stage));
      return;
    }
    const Value* mapping = section(top, "zero_optimization");
    if (mapping == nullptr) return;
    const Value stripped = without_auto(*mapping);
    Fields fields = fields_of(stripped, "zero_optimization.");
    if (is_auto(mapping->find("stage"))) {
      zero.stage = 2;
      run_.notes.push_back("zero_optimization.stage: \"auto\" is stage 2, as accelerate has it");
    }
    const auto stage = fields.integer("stage", {0, 3});
    zero.stage = static_cast<int>(stage.value_or(zero.stage));
    remember(mapping->find("stage"), "zero_optimization.stage", fmt::format("{}", zero.stage));
    const auto overlap = fields.boolean("overlap_comm");
    if (overlap) {
      zero.overlap_comm = *overlap;
      remember(mapping->find("overlap_comm"), "zero_optimization.overlap_comm",
               fmt::format("{}", *overlap));
    }
    zero.reduce_bucket_elements = bound(fields, "reduce_bucket_size", "");
    note_unfilled(*mapping);
    zero.auto_reduce_bucket = is_auto(mapping->find("reduce_bucket_size"));
    zero.auto_prefetch_bucket =
        zero.stage == 3 && (is_auto(mapping->find("stage3_prefetch_bucket_size")) ||
                            is_auto(mapping->find("prefetch_bucket_size")));
    zero.auto_param_persistence =
        zero.stage == 3 && (is_auto(mapping->find("stage3_param_persistence_threshold")) ||
                            is_auto(mapping->find("param_persistence_threshold")));
    zero.allgather_bucket_elements = bound(fields, "allgather_bucket_size", "");
    zero.prefetch_bucket_elements =
        bound(fields, "stage3_prefetch_bucket_size", "prefetch_bucket_size");
    zero.param_persistence_elements =
        bound(fields, "stage3_param_persistence_threshold", "param_persistence_threshold");
    zero.model_persistence_elements =
        bound(fields, "stage3_model_persistence_threshold", "model_persistence_threshold");
    zero.max_live_elements = bound(fields, "stage3_max_live_parameters", "max_live_parameters");
    zero.max_reuse_distance_elements =
        bound(fields, "stage3_max_reuse_distance", "max_reuse_distance");
    read_gather_flag(fields, zero);
    read_offload(fields);
    sort_table(fields, deepspeed_zero_keys(), "zero_optimization.");
    refuse_unknown(fields, "zero_optimization");
    finish(fields);
  }

 private:
  /// "auto" where the Trainer and accelerate fill in nothing: accelerate refuses it.
  void note_unfilled(const Value& mapping) {
    constexpr std::array<std::string_view, 6> filled = {"stage",
                                                        "reduce_bucket_size",
                                                        "stage3_prefetch_bucket_size",
                                                        "stage3_param_persistence_threshold",
                                                        "stage3_gather_16bit_weights_on_model_save",
                                                        "offload_optimizer"};
    std::vector<std::string> others;
    for (const Entry& entry : mapping.entries)
      if (is_auto(&entry.value) &&
          std::find(filled.begin(), filled.end(), entry.key) == filled.end())
        others.push_back(entry.key);
    if (!others.empty())
      run_.notes.push_back(
          fmt::format("{}: zero_optimization: \"auto\" is read as left out for {}; the Trainer "
                      "fills in nothing "
                      "there, and accelerate refuses it",
                      source_.name, fmt::join(others, ", ")));
  }

  /// One of two spellings of a bound, in elements.
  std::optional<std::int64_t> bound(Fields& zero, std::string_view key, std::string_view other) {
    if (!other.empty() && zero.has(key) && zero.has(other))
      zero.problem(other, fmt::format("`{}` and `{}` are two names of one key", key, other),
                   "keep one of the two");
    const std::string_view used = !other.empty() && zero.has(other) ? other : key;
    const auto count = zero.integer(used, {0, INT64_MAX});
    zero.take(key);
    if (!other.empty()) zero.take(other);
    if (count)
      remember(source_.root.find("zero_optimization")->find(used),
               fmt::format("zero_optimization.{}", used), fmt::format("{}", *count));
    return count;
  }

  void read_gather_flag(Fields& fields, ZeroConfig& zero) {
    constexpr std::array<std::string_view, 3> names = {"stage3_gather_16bit_weights_on_model_save",
                                                       "gather_16bit_weights_on_model_save",
                                                       "stage3_gather_fp16_weights_on_model_save"};
    std::string_view used;
    for (const std::string_view name : names) {
      if (!fields.has(name)) continue;
      if (!used.empty())
        fields.problem(name, fmt::format("`{}` and `{}` are two names of one key", used, name),
                       "keep one of the two");
      else
        used = name;
    }
    if (used == names[2])
      run_.notes.push_back(fmt::format("{} is the old name of {}", used, names[0]));
    std::optional<bool> gather = fields.boolean(used.empty() ? names[0] : used);
    const Value* zero_section = source_.root.find("zero_optimization");
    const bool says_auto = !used.empty() && is_auto(zero_section->find(used));
    if (says_auto) gather = false;  // as accelerate has it
    for (const std::string_view name : names) fields.take(name);
    if (zero.stage < 3) {
      if (gather.has_value() && !*gather)
        run_.notes.push_back(fmt::format(
            "zero_optimization.{}: false has no effect below stage 3: weights are exported", used));
      return;
    }
    zero.gather_weights_on_save = gather.value_or(true);
    remember(used.empty() ? nullptr : source_.root.find("zero_optimization")->find(used),
             fmt::format("zero_optimization.{}", names[0]),
             fmt::format("{}", zero.gather_weights_on_save));
    if (!zero.gather_weights_on_save)
      run_.notes.push_back(fmt::format(
          "{} is {}: checkpoints hold sharded, resumable state and no weights file, and neither "
          "does the final folder; `underkeel export` makes one",
          names[0], says_auto ? "\"auto\", which accelerate makes false" : "false"));
    else if (!gather.has_value())
      run_.notes.push_back(fmt::format(
          "{} is not given: checkpoints hold whole weights here, streamed; DeepSpeed would not "
          "write them",
          names[0]));
  }

  bool is_without_effect(std::string_view offload) const {
    return offload == "offload_param" && run_.zero.stage < 3;
  }

  void read_offload(Fields& fields) {
    struct Offload {
      std::string_view key;
      std::string_view old_key;
      std::array<std::string_view, 9> known;
    };
    constexpr std::array offloads = {
        Offload{"offload_optimizer",
                "cpu_offload",
                {"nvme_path", "buffer_count", "pin_memory", "pipeline_read", "pipeline_write",
                 "fast_init", "ratio", "super_offload", "cpuadam_cores_perc"}},
        Offload{"offload_param",
                "cpu_offload_param",
                {"nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "pin_memory"}}};
    for (const Offload& offload : offloads) {
      const bool old = fields.boolean(offload.old_key).value_or(false);
      if (fields.has(offload.old_key) && fields.has(offload.key))
        fields.problem(offload.old_key,
                       fmt::format("this is the old spelling of {}, also given", offload.key),
                       "remove it");
      else if (old && is_without_effect(offload.key))
        run_.notes.push_back(
            fmt::format("zero_optimization.{} has no effect below stage 3, in DeepSpeed as here: "
                        "parameters stay whole",
                        offload.old_key));
      else if (old)
        fields.problem(
            offload.old_key,
            fmt::format("this is the old spelling of {}: {{\"device\": \"cpu\"}}; offload is not "
                        "built yet",
                        offload.key),
            "remove it", ErrorCode::unsupported);
      const Value* mapping = section(fields, offload.key);
      if (mapping == nullptr) continue;
      Fields inner = fields_of(*mapping, fmt::format("zero_optimization.{}.", offload.key));
      const auto device = inner.text("device");
      for (const std::string_view known : offload.known)
        if (!known.empty()) inner.take(known);
      refuse_unknown(inner, offload.key);
      if (!device || *device == "none" || *device == "auto")
        continue;  // accelerate's "auto" is none
      if (*device != "cpu" && *device != "nvme")
        inner.problem("device", fmt::format("`{}` is no device for offload", *device),
                      "DeepSpeed has none, cpu and nvme");
      else if (is_without_effect(offload.key))
        run_.notes.push_back(
            "zero_optimization.offload_param has no effect below stage 3, in DeepSpeed as here: "
            "parameters stay whole");
      else
        inner.problem("device",
                      fmt::format("{} to {}: offload is not built yet", offload.key, *device),
                      "write none", ErrorCode::unsupported);
    }
    if (fields.take("cpu_offload_use_pin_memory") != nullptr)
      silent_.push_back("zero_optimization.cpu_offload_use_pin_memory");
  }
};

}  // namespace

void read_zero(Fields& top, const DeepspeedSource& source, Problems& problems, RunConfig& run,
               std::vector<std::string>& silent) {
  ZeroReader(source, problems, run, silent).read(top);
}

}  // namespace underkeel::spec
