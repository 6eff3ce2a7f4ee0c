#pragma once
// KEY=VALUE words that turn the files at hand into a row of DeepSpeed's table, and the files as they are with them.

#include <optional>
#include <string>
#include <vector>

#include "doctor/memory_rules.h"

namespace underkeel::doctor {

/// A row: what it sets.
struct Wanted {
  int stage = 0;
  Offload optimizer = Offload::none;
  Offload parameters = Offload::none;
  bool recomputes = true;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;
  std::int64_t evaluation_batch = 0;  // 0: as it is
  SavingChange saving = {};
  std::int64_t save_total_limit = 0;  // 0: as it is
};

class WordedFiles {
 public:
  /// `inputs` must outlive it.
  explicit WordedFiles(const Inputs& inputs);

  /// None where the files cannot be turned into it by words alone. `memory` is the case of the files as they are.
  std::optional<std::vector<std::string>> words_for(const Wanted& wanted,
                                                    const MemoryCase& memory) const;
  /// The case of the files with these words; none where DeepSpeed or the Trainer would then refuse a key.
  std::optional<MemoryCase> with(const std::vector<std::string>& words,
                                 const MemoryCase& memory) const;

 private:
  Inputs files_;  // a config, a run file and what they are judged by
  spec::Value config_;
};

}  // namespace underkeel::doctor
