// Draws the peaks of a plan as bars of characters, for a terminal.

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "base/units.h"
#include "render/render.h"

namespace underkeel::render {

namespace {

struct KindLook {
  char letter;
  int color;  // of the terminal's 256
};
// By BufferKind. Letters stand alone where there are no colours.
constexpr KindLook kind_looks[plan::buffer_kind_count] = {
    {'w', 33}, {'g', 166}, {'o', 245}, {'a', 74}, {'f', 36}, {'s', 178}, {'x', 133}, {'.', 240}};
constexpr int name_columns = 16;  // "  generate.next " is the longest
constexpr int size_columns = 11;
constexpr int mark_columns = 2;  // " *"
constexpr int fewest_columns = 10;
constexpr int most_columns = 100;

std::string cells(std::size_t kind, std::int64_t count, bool colored) {
  if (count <= 0) return "";
  if (!colored) return std::string(static_cast<std::size_t>(count), kind_looks[kind].letter);
  std::string text = fmt::format("\x1b[38;5;{}m", kind_looks[kind].color);
  for (std::int64_t i = 0; i < count; ++i) text += "█";
  return text + "\x1b[0m";
}

}  // namespace

std::string peak_bars(const plan::Plan& plan, const Outlook& outlook, const BarLook& look) {
  std::string text;
  const auto out = std::back_inserter(text);
  const std::int64_t width = std::clamp(look.columns - name_columns - size_columns - mark_columns,
                                        fewest_columns, most_columns);
  std::array<bool, plan::buffer_kind_count> is_used{};
  for (int s = 0; s < plan::memory_space_count; ++s) {
    const auto space = static_cast<plan::MemorySpace>(s);
    const plan::Peak* largest = largest_peak(plan, space);
    if (largest == nullptr || largest->size_bytes == 0) continue;
    fmt::format_to(out, "{}: {}", name_of(space), format_bytes(peak_of(plan, space)->peak_bytes));
    if (const auto& budget = outlook.budgets[index(space)])
      fmt::format_to(out, " of {}", format_bytes(budget->size_bytes));
    text += "\n";
    std::vector<PhaseRow> rows = phase_rows(plan, space, outlook.saves);
    if (std::all_of(rows.begin(), rows.end(),
                    [&](const PhaseRow& row) { return row.peak->by_kind == largest->by_kind; })) {
      rows = {PhaseRow{.name = "all phases", .peak = largest}};
    }
    bool is_marked = false;
    for (const PhaseRow& row : rows) {
      const plan::Peak& one = *row.peak;
      const bool is_largest = !is_marked && one.size_bytes == largest->size_bytes;
      is_marked = is_marked || is_largest;
      fmt::format_to(out, "  {:{}}", row.name, name_columns - 2);
      // Every edge is rounded by itself, so that a row is as long as its sum.
      std::int64_t bytes = 0;
      std::int64_t drawn = 0;
      for (std::size_t kind = 0; kind < plan::buffer_kind_count; ++kind) {
        bytes += one.by_kind[kind];
        is_used[kind] = is_used[kind] || one.by_kind[kind] > 0;
        const auto edge =
            static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(width) /
                                          static_cast<double>(largest->size_bytes) +
                                      0.5);
        text += cells(kind, edge - drawn, look.colored);
        drawn = edge;
      }
      text += std::string(static_cast<std::size_t>(width - drawn), ' ');
      fmt::format_to(out, "{:>{}}{}\n", format_bytes(one.size_bytes), size_columns,
                     is_largest ? " *" : "");
    }
  }
  int column = 0;
  const auto explain = [&](const std::string& sign, std::string_view name) {
    const int own_columns = static_cast<int>(name.size()) + 4;  // "  x name"
    if (column > 0 && column + own_columns > look.columns) {
      text += "\n";
      column = 0;
    }
    fmt::format_to(out, "  {} {}", sign, name);
    column += own_columns;
  };
  for (std::size_t kind = 0; kind < plan::buffer_kind_count; ++kind)
    if (is_used[kind])
      explain(cells(kind, 1, look.colored), name_of(static_cast<plan::BufferKind>(kind)));
  explain("*", "peak");
  return text + "\n";
}

}  // namespace underkeel::render
