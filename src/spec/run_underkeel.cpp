// The `underkeel:` mapping. docs/guide/run-files.md lists every key.

#include "base/units.h"
#include "spec/run_sections.h"

namespace underkeel::spec {
namespace {

/// One mapping below `underkeel`: reads, notes sources, and refuses unknown keys.
class Section {
 public:
  Section(RunReading& reading, const Value& mapping, std::string prefix)
      : reading_(reading),
        mapping_(mapping),
        prefix_(std::move(prefix)),
        fields_(mapping, prefix_, reading.problems, QuotedValues::accept) {}

  Fields& fields() { return fields_; }

  template <class T>
  T keep(std::string_view key, std::optional<T> value, T fallback) {
    const T kept = value.value_or(fallback);
    if (value) note(key, fmt::format("{}", kept));
    return kept;
  }

  std::optional<std::int64_t> bytes(std::string_view key) {
    const Value* value = fields_.take(key);
    if (value == nullptr || value->kind == ValueKind::null) return std::nullopt;
    if (value->kind != ValueKind::text && value->kind != ValueKind::number) {
      fields_.problem(key, fmt::format("a size is wanted, {} was found", shown(*value)),
                      "write a number and a unit, such as 80GiB");
      return std::nullopt;
    }
    const auto size_bytes = parse_bytes(value->text, key);
    if (!size_bytes) {
      fields_.problem(key, size_bytes.error().what, size_bytes.error().fix);
      return std::nullopt;
    }
    if (*size_bytes <= 0) {
      fields_.problem(key, "a size above 0 is wanted");
      return std::nullopt;
    }
    const auto as_bytes = [&] {
      return fmt::format("{} {}", format_count(*size_bytes), *size_bytes == 1 ? "byte" : "bytes");
    };
    if (lacks_unit(value->text, *size_bytes)) {
      fields_.problem(
          key,
          fmt::format("`{}` without a unit is {}; no run takes so little", value->text, as_bytes()),
          fmt::format("write a unit: {0}MiB / {0}GiB", value->text));
      return std::nullopt;
    }
    constexpr std::int64_t page_bytes = 4 * kibibyte;
    if (*size_bytes < page_bytes) {
      fields_.problem(key,
                      fmt::format("`{}` is {}, less than a page of memory; no run takes so little",
                                  value->text, as_bytes()),
                      "write a number and a unit, such as 80GiB");
      return std::nullopt;
    }
    note(key, format_bytes(*size_bytes));
    return *size_bytes;
  }

  /// The mapping at `key`, or null.
  const Value* section(std::string_view key) {
    const Value* value = fields_.take(key);
    if (value == nullptr || value->kind == ValueKind::null) return nullptr;
    if (value->kind == ValueKind::mapping) return value;
    fields_.problem(key, fmt::format("a mapping is wanted, {} was found", shown(*value)));
    return nullptr;
  }

  /// Ends the section: unknown keys are problems, what was converted is noted.
  void finish() {
    for (const std::string& said : fields_.notes()) reading_.run.notes.push_back(said);
    const std::vector<std::string> known = fields_.asked();
    fields_.refuse_unread([&](const Entry& entry) -> Fields::Refusal {
      const std::string nearest = nearest_word(entry.key, known);
      return {"unknown key", nearest.empty() ? "" : fmt::format("the nearest is `{}`", nearest)};
    });
  }

 private:
  void note(std::string_view key, std::string value) {
    const Value* given = mapping_.find(key);
    reading_.run.provenance.push_back(
        {prefix_ + std::string(key), std::move(value),
         given != nullptr && given->overridden ? "command line" : reading_.file_name});
  }

  RunReading& reading_;
  const Value& mapping_;
  std::string prefix_;
  Fields fields_;
};

void read_recompute(Section& section, RunConfig& run) {
  const auto name = section.fields().text("recompute");
  if (!name) return;
  struct Level {
    std::string_view name;
    Recompute level;
  };
  constexpr Level levels[] = {{"auto", Recompute::automatic},
                              {"none", Recompute::none},
                              {"cheap", Recompute::cheap},
                              {"block", Recompute::block}};
  for (const Level& known : levels)
    if (known.name == *name) {
      run.recompute = known.level;
      section.keep("recompute", name, std::string());
      return;
    }
  section.fields().problem("recompute", fmt::format("`{}` is no level of recomputation", *name),
                           "write auto, none, cheap or block");
}

void read_data_keys(Section& section, DataConfig& data) {
  Fields& fields = section.fields();
  const auto attention = fields.text("packing_attention");
  if (attention && *attention != "shared" && *attention != "separate")
    fields.problem("packing_attention", fmt::format("`{}` is no kind of attention", *attention),
                   "write separate (no sample sees another) or shared");
  if (attention) section.keep("packing_attention", attention, std::string());
  data.shared_attention = attention == "shared";
  data.skip_broken_records = section.keep(
      "skip_broken_records", fields.boolean("skip_broken_records"), data.skip_broken_records);
  const auto folder = fields.text("token_cache");
  // Set already: by tokenized_path.
  if (folder && !data.token_cache.empty())
    fields.problem("token_cache", "tokenized_path names the folder of tokens too",
                   "keep one of the two");
  if (folder) data.token_cache = section.keep("token_cache", folder, std::string());
}

}  // namespace

void read_underkeel(RunReading& reading) {
  const Value* mapping = reading.fields.take("underkeel");
  if (mapping == nullptr || mapping->kind == ValueKind::null) return;
  if (mapping->kind != ValueKind::mapping) {
    reading.fields.problem("underkeel",
                           fmt::format("a mapping is wanted, {} was found", shown(*mapping)));
    return;
  }
  RunConfig& run = reading.run;
  Section top(reading, *mapping, "underkeel.");
  Fields& fields = top.fields();
  constexpr NumberRange seconds = {.least = 0, .most = 1e9, .least_is_allowed = false};

  const auto device = fields.text("device");
  if (device && *device != "cpu" && *device != "cuda" && *device != "auto")
    fields.problem("device", fmt::format("`{}` is no device", *device), "write cpu, cuda or auto");
  run.device = top.keep<std::string>("device", device, run.device);
  run.ranks = static_cast<int>(
      top.keep<std::int64_t>("ranks", fields.integer("ranks", {1, 4096}), run.ranks));
  run.threads_per_rank = static_cast<int>(top.keep<std::int64_t>(
      "threads", fields.integer("threads", {0, 1024}), run.threads_per_rank));
  run.matmul_timing_s =
      top.keep("matmul_timing", fields.number("matmul_timing", {.least = 0, .most = 3600}),
               run.matmul_timing_s);
  run.guards_buffers = top.keep("guard", fields.boolean("guard"), run.guards_buffers);
  read_recompute(top, run);
  read_data_keys(top, run.data);
  run.collective_time_limit_s =
      top.keep("collective_time_limit", fields.number("collective_time_limit", seconds),
               run.collective_time_limit_s);
  run.resume_weights_only = top.keep("resume_weights_only", fields.boolean("resume_weights_only"),
                                     run.resume_weights_only);
  if (const Value* memory = top.section("memory")) {
    Section section(reading, *memory, "underkeel.memory.");
    run.device_budget_bytes = section.bytes("device");
    run.host_budget_bytes = section.bytes("host");
    section.finish();
  }
  if (const Value* save = top.section("save")) {
    Section section(reading, *save, "underkeel.save.");
    Fields& inner = section.fields();
    run.save.asynchronous =
        section.keep("asynchronous", inner.boolean("asynchronous"), run.save.asynchronous);
    run.save_time_limit_s =
        section.keep("time_limit", inner.number("time_limit", seconds), run.save_time_limit_s);
    section.finish();
  }
  top.finish();
}

}  // namespace underkeel::spec
