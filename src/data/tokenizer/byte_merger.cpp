#include "data/tokenizer/byte_merger.h"

#include <bit>

#include <immintrin.h>

namespace underkeel::data {
namespace {

constexpr std::size_t lane_count = 8;
constexpr std::size_t rank_step = 16;  // ranks that are looked at together: two vectors

// A symbol before the first one and one behind the last merge with nothing.
constexpr std::size_t most_symbols = ByteMerger::longest_word_bytes + 2;
constexpr std::size_t most_ranks = (most_symbols + rank_step - 1) / rank_step * rank_step;
static_assert(most_symbols <= 64, "symbols are bits of a word");

// Where the first of the lowest ranks is; `count` is a multiple of rank_step.
std::size_t first_of_lowest(const std::int32_t* ranks, std::size_t count) {
  const auto at = [&](std::size_t index) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(ranks + index));
  };
  __m256i lowest = _mm256_min_epi32(at(0), at(8));
  for (std::size_t index = rank_step; index < count; index += rank_step)
    lowest = _mm256_min_epi32(lowest, _mm256_min_epi32(at(index), at(index + 8)));
  lowest = _mm256_min_epi32(lowest, _mm256_permute2x128_si256(lowest, lowest, 1));
  lowest = _mm256_min_epi32(lowest, _mm256_shuffle_epi32(lowest, 0b01001110));
  lowest = _mm256_min_epi32(lowest, _mm256_shuffle_epi32(lowest, 0b10110001));
  const auto where = [&](std::size_t index) {
    const __m256 is_equal = _mm256_castsi256_ps(_mm256_cmpeq_epi32(at(index), lowest));
    return std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_ps(is_equal))} << index;
  };
  std::uint64_t equal = where(0) | where(8);
  for (std::size_t index = rank_step; index < count; index += rank_step)
    equal |= where(index) | where(index + 8);
  return static_cast<std::size_t>(std::countr_zero(equal));
}

}  // namespace

// A word on its way. A merge leaves its symbol in the place of the left one and takes the bit of the
// right one away. Nothing is initialised: begin() writes what step() reads.
struct ByteMerger::Lane {
  Job* job;
  std::uint64_t standing;  // a bit for each symbol that is left, and for both at the ends
  std::size_t rank_count;
  // By symbol: its id, and the merge with the one that stands next.
  alignas(32) std::array<std::int32_t, most_ranks> ranks;
  std::array<std::int32_t, most_ranks> merged;
  std::array<std::int32_t, most_ranks> ids;

  // The pairs that the last merge made, asked for at places; at first none, at the place in front.
  std::size_t asked_left;
  std::size_t asked_previous;
  MergeTable::Question with_next;
  MergeTable::Question with_previous;

  void put(std::size_t place, const Merge& merge) {
    ranks[place] = merge.rank;
    merged[place] = merge.merged_id;
  }
};

ByteMerger::ByteMerger(const MergeTable& merges, const std::array<std::int32_t, 256>& id_of_byte)
    : merges_(merges), id_of_byte_(id_of_byte), merge_of_bytes_(std::size_t{1} << 16) {
  for (std::size_t pair = 0; pair < merge_of_bytes_.size(); ++pair)
    merge_of_bytes_[pair] = merges.get(id_of_byte[pair >> 8], id_of_byte[pair & 0xFF]);
}

void ByteMerger::begin(Lane& lane, Job& job) const {
  const std::size_t count = job.word.size();
  lane.job = &job;
  lane.standing = (std::uint64_t{4} << count) - 1;
  lane.rank_count = (count + rank_step) / rank_step * rank_step;
  for (std::size_t index = 0; index < lane.rank_count; index += 8)
    _mm256_store_si256(reinterpret_cast<__m256i*>(lane.ranks.data() + index),
                       _mm256_set1_epi32(Merge::no_rank));
  lane.asked_left = lane.asked_previous = 0;
  lane.with_next = lane.with_previous = {};
  lane.ids[0] = lane.ids[count + 1] = -1;
  std::size_t pair = static_cast<unsigned char>(job.word[0]);
  lane.ids[1] = id_of_byte_[pair];
  for (std::size_t index = 1; index < count; ++index) {
    const std::size_t byte = static_cast<unsigned char>(job.word[index]);
    pair = (pair << 8 | byte) & 0xFFFF;
    lane.put(index, merge_of_bytes_[pair]);
    lane.ids[index + 1] = id_of_byte_[byte];
  }
}

// Does the next merge; false when there is none: then the job has its ids.
inline bool ByteMerger::step(Lane& lane) const {
  const std::size_t left = first_of_lowest(lane.ranks.data(), lane.rank_count);
  if (lane.ranks[left] == Merge::no_rank) {
    std::uint64_t rest = lane.standing & ~std::uint64_t{1};
    std::size_t count = 0;
    for (; (rest & (rest - 1)) != 0; rest &= rest - 1)
      lane.job->ids[count++] = lane.ids[static_cast<std::size_t>(std::countr_zero(rest))];
    lane.job->id_count = count;
    return false;
  }
  const std::uint64_t behind = lane.standing & (~std::uint64_t{1} << left);
  const std::uint64_t behind_right = behind & (behind - 1);
  lane.standing ^= behind ^ behind_right;
  lane.ranks[static_cast<std::size_t>(std::countr_zero(behind))] = Merge::no_rank;
  const auto next = static_cast<std::size_t>(std::countr_zero(behind_right));
  const std::uint64_t before = lane.standing & ((std::uint64_t{1} << left) - 1);
  const auto previous = static_cast<std::size_t>(63 - std::countl_zero(before));
  const std::int32_t id = lane.merged[left];
  lane.ids[left] = id;
  lane.asked_left = left;
  lane.asked_previous = previous;
  lane.with_next = merges_.ask(id, lane.ids[next]);
  lane.with_previous = merges_.ask(lane.ids[previous], id);
  return true;
}

// Takes up what the last step asked for.
inline void ByteMerger::take_answers(Lane& lane) const {
  const Merge with_next = merges_.answer(lane.with_next);
  const Merge with_previous = merges_.answer(lane.with_previous);
  lane.put(lane.asked_left, with_next);
  lane.put(lane.asked_previous, with_previous);
  merges_.fetch(with_next.merged_id);
  merges_.fetch(with_previous.merged_id);
}

void ByteMerger::merge(std::span<Job> jobs) const {
  std::array<Lane, lane_count> lanes;
  std::array<Lane*, lane_count> active;
  std::size_t active_count = 0;
  std::size_t next_job = 0;
  for (; next_job < jobs.size() && active_count < lane_count; ++next_job, ++active_count) {
    active[active_count] = &lanes[active_count];
    begin(lanes[active_count], jobs[next_job]);
  }
  while (active_count > 0) {
    // All answers before the next steps: ranks just written are slow to load as a vector.
    for (std::size_t index = 0; index < active_count; ++index) take_answers(*active[index]);
    for (std::size_t index = 0; index < active_count;) {
      if (!step(*active[index])) {
        if (next_job == jobs.size()) {
          active[index] = active[--active_count];
          continue;
        }
        begin(*active[index], jobs[next_job++]);
      }
      ++index;
    }
  }
}

}  // namespace underkeel::data
