#pragma once
// Who holds which bytes of an arena.

#include <array>
#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "verify/report.h"

namespace underkeel::verify {

/// Whether every buffer has an offset, so that tenants may be followed.
bool check_offset_count(const plan::Schedule& schedule, const plan::ArenaLayout& layout,
                        Report& report);

/// Offsets are aligned and inside their block; persistent buffers overlap nothing. `acquired` says
/// of every buffer whether any segment acquires it: those that nobody does have no bytes.
void check_offsets(const plan::Schedule& schedule, const plan::ArenaLayout& layout,
                   const std::vector<bool>& acquired, Report& report);

/// Peaks are what the lists say, `peaks` by segment and space.
void check_peaks(const plan::Plan& plan,
                 const std::vector<std::array<std::int64_t, plan::memory_space_count>>& peaks,
                 Report& report);

/// The latest transient tenant of every byte, in the order of one segment's list.
class Tenants {
 public:
  Tenants(const plan::Schedule& schedule, const plan::ArenaLayout& layout)
      : schedule_(schedule), layout_(layout) {}

  void start_segment() {
    for (auto& space : tenancies_) space.clear();
  }
  /// Gives `buffer` its bytes; returns those who held some of them before, each once. An earlier
  /// tenant whose bytes have all been taken over by later ones is not named: they answer for it.
  const std::vector<plan::BufferId>& move_in(plan::BufferId buffer);

 private:
  struct Tenancy {
    std::int64_t begin_bytes = 0;
    std::int64_t end_bytes = 0;
    plan::BufferId buffer = plan::no_buffer;
  };

  const plan::Schedule& schedule_;
  const plan::ArenaLayout& layout_;
  std::array<std::vector<Tenancy>, plan::memory_space_count> tenancies_;  // by begin, apart
  std::vector<plan::BufferId> evicted_;
};

}  // namespace underkeel::verify
