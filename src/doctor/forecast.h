#pragma once
// What doctor foretells for an engine: does the run go, and what does it hold when and where.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/finding.h"

namespace underkeel::doctor {

enum class Verdict { runs, fails, unknown };
std::string_view name_of(Verdict verdict);

enum class Phase { load, first_step, step, update, evaluate, save, after_save, resume };
constexpr std::size_t phase_count = 8;
std::string_view name_of(Phase phase);

enum class Space { device, pinned_host, host, nvme };
constexpr std::size_t space_count = 4;
std::string_view name_of(Space space);

/// A part of what a space holds: "weights", "bucket". `high` is above `low` where only a range is known.
struct Term {
  std::string_view name;
  double low_bytes = 0;
  double high_bytes = 0;
};

/// What page-locked blocks take beyond their size when each is rounded up to a power of two. A setting of torch's
/// allocator switches that off, so verdicts leave it out, and a finding tells it.
constexpr std::string_view rounding_term = "rounding";

/// What is held in one space at the worst moment of one phase: of one rank in `device`, of one node in the others.
/// `pinned_host` is the page-locked part of `host`.
struct Holding {
  std::vector<Term> terms;
  std::optional<double> limit_bytes;

  double low() const;
  double high() const;
  /// The sum at most, without one term.
  double high_without(std::string_view name) const;
  void add(std::string_view name, double bytes) { terms.push_back({name, bytes, bytes}); }
  void add(std::string_view name, double low, double high) { terms.push_back({name, low, high}); }
};

struct Forecast {
  Verdict verdict = Verdict::unknown;
  std::array<std::array<std::optional<Holding>, space_count>, phase_count> memory;

  std::optional<Holding>& at(Phase phase, Space space) {
    return memory[static_cast<std::size_t>(phase)][static_cast<std::size_t>(space)];
  }
  const std::optional<Holding>& at(Phase phase, Space space) const {
    return memory[static_cast<std::size_t>(phase)][static_cast<std::size_t>(space)];
  }
};

/// What the term is at least and at most; zeros where there is none.
std::pair<double, double> term_range(const Forecast& forecast, Phase phase, Space space,
                                     std::string_view name);
/// What the term is at most; 0 where there is none.
double term_bytes(const Forecast& forecast, Phase phase, Space space, std::string_view name);

/// What a row saves: as the run does, weights alone, or nothing before its end.
enum class Saving { as_it_is, weights_only, nothing };

/// One row of the table of what would cure it.
struct Alternative {
  Engine engine = Engine::deepspeed;
  int stage = 0;
  std::string offload_optimizer = "none";
  std::string offload_param = "none";
  bool recomputes = true;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;
  std::int64_t evaluation_batch = 0;  // 0: no run is known
  Verdict verdict = Verdict::unknown;
  int changes = 0;          // settings that differ from what was given
  double device_bytes = 0;  // at most
  std::optional<double> device_margin_bytes;
  double host_bytes = 0;  // at most
  std::optional<double> host_margin_bytes;
  // At least, of a space whose limit lies between: there the row may fit.
  std::optional<double> device_least_bytes;
  std::optional<double> host_least_bytes;
  std::optional<double> nvme_bytes;  // of a node, at most
  // What it writes, where the free disk is known.
  std::optional<double> disk_bytes;
  std::optional<double> disk_margin_bytes;
  // Changes of what it writes, where it would not fit the disk without.
  bool gathers_weights = false;       // stage3_gather_16bit_weights_on_model_save
  std::int64_t save_total_limit = 0;  // 0: as it is
  Saving saving = Saving::as_it_is;
  // Of a run that goes on from a checkpoint of the row, in a node's host memory; none where its limit is not known.
  std::optional<Verdict> resume;
  double resume_host_bytes = 0;  // at most
  std::string words;             // the overrides that make it
};

/// By what costs most first: offload, gathering at stage 3, recomputation, micro-batches, evaluations.
bool costs_less_time(const Alternative& a, const Alternative& b);

/// Without the rows that another one makes needless: one that is no slower in any setting that costs time, needs no more
/// changes and no more memory, and is better in one of these.
std::vector<Alternative> without_needless(std::vector<Alternative> rows);

}  // namespace underkeel::doctor
