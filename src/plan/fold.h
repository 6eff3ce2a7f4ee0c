#pragma once
// Finds what a list of lines says again: the same operations for the next layer, chunk or piece.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace underkeel::plan {

/// What a number inside a line counts.
enum class Counted : std::uint8_t { layer, unit, chunk, row, element, slot, shard, position };
constexpr std::size_t counted_count = 8;

/// Stands in a line's text before the digits of a position, so that it is told from other numbers.
constexpr char position_mark = '\x01';

/// A line as folding sees it.
struct FoldLine {
  std::int64_t first_op = 0;
  std::int64_t op_count = 0;
  std::string pattern;  // the text with its counting numbers taken out
  struct Number {
    Counted counts = Counted::layer;
    std::int64_t value = 0;
    std::string word;  // that a layer or unit stands in: "d.layers.3.out"
  };
  std::vector<Number> numbers;  // in their order
};
struct FoldUnit {
  std::string name;
  std::int64_t shard_elements = 0;
};
/// With `units`, their names are what counts, in their order, and the elements of a unit's shard are no numbers but its
/// own; without, the layers.
FoldLine fold_line(std::int64_t first_op, std::int64_t op_count, const std::string& text,
                   std::span<const FoldUnit> units = {});

/// Lines [first, first + count) of the last list are those from `source_first` on of list `source_list`, with what they
/// count moved on. Lists that are the same one may overlap: then each line is like the one that far before it.
struct Repeat {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t source_list = 0;
  std::size_t source_first = 0;
  std::array<std::int64_t, counted_count> moves{};  // by Counted
  std::vector<std::string> stays;                   // words whose layer or unit does not move
};

/// The repeats of lines of the last of `lists`, in order and apart; each stands for two lines or more, of that list or
/// of an earlier one.
std::vector<Repeat> find_repeats(std::span<const std::vector<FoldLine>> lists);

}  // namespace underkeel::plan
