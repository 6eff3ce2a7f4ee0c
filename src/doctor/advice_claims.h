#pragma once
// What a claim says beside its subject: of which machine, of how much memory, and which of two things has more of what.
// Not here: counts of settings (advice_numbers.h), what denies a claim (advice_clauses.h).

#include <optional>
#include <string_view>
#include <vector>

#include "doctor/advice_text.h"
#include "doctor/memory_rules.h"

namespace underkeel::doctor {

/// The machine that a sentence supposes: "on 8 GPUs", "a 24 GB card", "with only 64 GB RAM".
struct SaidMachine {
  std::optional<double> ranks, card_bytes, host_bytes;
  bool operator==(const SaidMachine&) const = default;
};

/// How much memory is said to be needed: "less than 10 GB", "约占 80GB 内存".
struct SaidAmount {
  enum class Bound { about, at_most, at_least };
  Bound bound = Bound::about;
  double bytes = 0;
  bool is_of_host = false;
  bool operator==(const SaidAmount&) const = default;
};

SaidMachine machine_said(std::string_view normalised_sentence);
/// The first that stands in none of `own`, words of the advice itself.
std::optional<SaidAmount> amount_said(std::string_view normalised_sentence,
                                      const std::vector<Stretch>& own);

/// `memory` on that machine.
void suppose(const SaidMachine& machine, MemoryCase& memory);

/// Of what one thing has more than another.
enum class Scale { none, memory, speed, merit };
/// Whether the first of "z3|z2" is said to have more than the second; sides are alternatives cut at `/`. Nothing where
/// the sentence compares nothing.
std::optional<bool> first_has_more(std::string_view normalised_sentence, std::string_view sides,
                                   Scale scale);

}  // namespace underkeel::doctor
