#pragma once
// What the readers of a DeepSpeed config's sections share. Private to spec.

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/run_keys.h"
#include "spec/run_sections.h"

namespace underkeel::spec {

bool is_auto(const Value* value);

/// Keys that only fp16 has; people put them into bf16.
constexpr std::array<std::string_view, 8> loss_scale_keys = {
    "loss_scale", "initial_scale_power",          "loss_scale_window",
    "hysteresis", "consecutive_hysteresis",       "min_loss_scale",
    "auto_cast",  "fp16_master_weights_and_grads"};

class DeepspeedPart {
 public:
  /// Collects in `silent` the keys that are accepted without effect.
  DeepspeedPart(const DeepspeedSource& source, Problems& problems, RunConfig& run,
                std::vector<std::string>& silent)
      : source_(source), problems_(problems), run_(run), silent_(silent) {}

 protected:
  Fields fields_of(const Value& mapping, const std::string& section);
  /// Hands on the notes that reading left.
  void finish(const Fields& fields);
  void remember(const Value* value, const std::string& key, std::string text);
  /// The mapping at `key` of `fields`; null when it is absent, null or of another kind.
  const Value* section(Fields& fields, std::string_view key);
  /// A copy in which "auto" is null, so that it reads as absent.
  static Value without_auto(const Value& mapping);
  /// Takes the table's keys: refuses what is not neutral, collects what has no effect.
  void sort_table(Fields& fields, std::span<const RunKey> table, std::string_view section_name);
  /// Every key that nothing asked for, with where it belongs or what it is nearest to.
  void refuse_unknown(Fields& fields, std::string_view section_name);

  const DeepspeedSource& source_;
  Problems& problems_;
  RunConfig& run_;
  std::vector<std::string>& silent_;
};

/// Reads zero_optimization into run.zero.
void read_zero(Fields& top, const DeepspeedSource& source, Problems& problems, RunConfig& run,
               std::vector<std::string>& silent);

/// Reads scheduler into run.optimizer.
void read_scheduler(Fields& top, const DeepspeedSource& source, Problems& problems, RunConfig& run,
                    std::vector<std::string>& silent);

}  // namespace underkeel::spec
