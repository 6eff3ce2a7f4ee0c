#include "plan/fold.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace underkeel::plan {

namespace {

constexpr std::size_t fewest_lines = 2;
constexpr std::size_t most_words_that_stay = 2;  // a sentence with more is no help
constexpr std::size_t most_candidates = 4;       // of each list: the nearest ones

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

std::size_t end_of_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// What the digits at `begin` count; none for other numbers. A range's second number counts what its first one does.
std::optional<Counted> counted_at(std::string_view text, std::size_t begin) {
  const std::string_view before = text.substr(0, begin);
  if (before.ends_with(position_mark)) return Counted::position;
  if (before.ends_with("layers.")) return Counted::layer;
  if (before.ends_with("[") && text.substr(end_of_digits(text, begin)).starts_with("]"))
    return Counted::slot;
  if (before.ends_with("chunk ")) return Counted::chunk;
  std::size_t first = begin;
  std::size_t end = end_of_digits(text, begin);
  if (begin > 1 && (text[begin - 1] == ':' || text[begin - 1] == '-') &&
      is_digit(text[begin - 2])) {
    first = begin - 1;
    while (first > 0 && is_digit(text[first - 1])) --first;
  } else if (end < text.size() && (text[end] == ':' || text[end] == '-')) {
    const std::size_t second = end + 1;
    end = end_of_digits(text, second);
    if (end == second) return std::nullopt;
  } else {
    return std::nullopt;
  }
  if (first == 0) return std::nullopt;
  const char opens = text[first - 1];
  const std::string_view behind = text.substr(end);
  if (opens == '(' && behind.starts_with(", ")) return Counted::row;
  if (opens == '[' && behind.starts_with("]")) return Counted::element;
  if (opens == ' ' && (behind.empty() || behind[0] == ' ')) return Counted::element;
  return std::nullopt;
}

/// The word that holds the character at `at`.
std::string_view word_around(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(begin, end - begin);
}

/// The unit that a word begins with.
std::span<const FoldUnit>::iterator unit_at(std::string_view word,
                                            std::span<const FoldUnit> units) {
  return std::find_if(units.begin(), units.end(), [&](const FoldUnit& unit) {
    return word.starts_with(unit.name) &&
           (word.size() == unit.name.size() || word[unit.name.size()] == '.');
  });
}

/// How a run of lines follows from its source, as far as its lines say.
class Moves {
 public:
  /// Whether `to` follows from `from` as the lines before it do.
  bool take(const FoldLine& from, const FoldLine& to) {
    if (from.pattern != to.pattern || from.op_count != to.op_count) return false;
    const auto by_before = by_;
    const std::size_t stays_before = stays_.size();
    for (std::size_t i = 0; i < from.numbers.size(); ++i) {
      const std::int64_t difference = to.numbers[i].value - from.numbers[i].value;
      const bool follows = from.numbers[i].counts == Counted::position
                               ? difference == to.first_op - from.first_op
                               : take(from.numbers[i], difference);
      if (follows) continue;
      by_ = by_before;
      stays_.resize(stays_before);
      return false;
    }
    return true;
  }

  void write_into(Repeat& repeat) const {
    for (std::size_t i = 0; i < counted_count; ++i) repeat.moves[i] = by_[i].value_or(0);
    if (by(Counted::layer) || by(Counted::unit)) repeat.stays.assign(stays_.begin(), stays_.end());
  }

 private:
  std::optional<std::int64_t>& by(Counted counts) { return by_[static_cast<std::size_t>(counts)]; }
  const std::optional<std::int64_t>& by(Counted counts) const {
    return by_[static_cast<std::size_t>(counts)];
  }

  bool take(const FoldLine::Number& from, std::int64_t difference) {
    // Elements move, or are a shard's own: what is both could be read in two ways.
    auto& move = by(from.counts == Counted::shard ? Counted::element : from.counts);
    if (from.counts == Counted::layer || from.counts == Counted::unit)
      return take_word(from.word, difference, move);
    if (!move) move = difference;
    return *move == difference;
  }

  /// A word's layer moves always or never, and all that move do by the same.
  bool take_word(std::string_view word, std::int64_t difference,
                 std::optional<std::int64_t>& move) {
    const auto [at, is_new] = moves_.try_emplace(word, difference != 0);
    if (at->second != (difference != 0)) return false;
    if (difference == 0 && is_new) stays_.push_back(word);
    if (difference != 0 && !move) move = difference;
    return (difference == 0 || *move == difference) &&
           (!move || stays_.size() <= most_words_that_stay);
  }

  std::array<std::optional<std::int64_t>, counted_count> by_;
  std::vector<std::string_view> stays_;
  std::unordered_map<std::string_view, bool> moves_;  // by word: whether its layer does
};

Repeat longest_from(std::span<const std::vector<FoldLine>> lists, std::size_t first,
                    std::size_t source_list, std::size_t source_first) {
  const std::vector<FoldLine>& to = lists.back();
  const std::vector<FoldLine>& from = lists[source_list];
  Repeat repeat{.first = first, .source_list = source_list, .source_first = source_first};
  Moves moves;
  while (first + repeat.count < to.size() && source_first + repeat.count < from.size() &&
         moves.take(from[source_first + repeat.count], to[first + repeat.count]))
    ++repeat.count;
  moves.write_into(repeat);
  return repeat;
}

}  // namespace

FoldLine fold_line(std::int64_t first_op, std::int64_t op_count, const std::string& text,
                   std::span<const FoldUnit> units) {
  FoldLine line{.first_op = first_op, .op_count = op_count};
  const auto add = [&](Counted counts, std::int64_t value, std::string word) {
    line.numbers.push_back({counts, value, std::move(word)});
    line.pattern += static_cast<char>('\x02' + static_cast<char>(counts));
  };
  const FoldUnit* unit = nullptr;  // the last one named
  for (std::size_t at = 0; at < text.size();) {
    if (is_word(text[at]) && (at == 0 || !is_word(text[at - 1])))
      if (const auto found = unit_at(word_around(text, at), units); found != units.end()) {
        unit = &*found;
        add(Counted::unit, found - units.begin(), std::string(word_around(text, at)));
        at += unit->name.size();
        continue;
      }
    if (!is_digit(text[at]) || (at > 0 && is_digit(text[at - 1]))) {
      line.pattern += text[at++];
      continue;
    }
    const std::size_t end = end_of_digits(text, at);
    std::int64_t value = 0;
    std::from_chars(text.data() + at, text.data() + end, value);
    const std::optional<Counted> counts = counted_at(text, at);
    const bool stands_alone = at > 0 && text[at - 1] == '(' && text.substr(end).starts_with(")");
    if (unit != nullptr && value == unit->shard_elements &&
        (stands_alone || counts == Counted::element)) {
      add(Counted::shard, 0, {});
    } else if (counts) {
      const bool is_layer = counts == Counted::layer;
      add(*counts, value, is_layer ? std::string(word_around(text, at)) : std::string());
    } else {
      line.pattern.append(text, at, end - at);
    }
    at = end;
  }
  return line;
}

std::vector<Repeat> find_repeats(std::span<const std::vector<FoldLine>> lists) {
  const std::vector<FoldLine>& lines = lists.back();
  using Places = std::unordered_map<std::string_view, std::vector<std::size_t>>;
  std::vector<Places> places(lists.size());
  for (std::size_t list = 0; list + 1 < lists.size(); ++list)
    for (std::size_t i = 0; i < lists[list].size(); ++i)
      places[list][lists[list][i].pattern].push_back(i);
  std::vector<Repeat> repeats;
  for (std::size_t i = 0; i < lines.size();) {
    Repeat best;
    for (std::size_t back = 0; back < lists.size(); ++back) {
      const std::size_t list = lists.size() - 1 - back;
      const auto found = places[list].find(lines[i].pattern);
      if (found == places[list].end()) continue;
      const std::vector<std::size_t>& at = found->second;
      for (std::size_t k = 0; k < std::min(at.size(), most_candidates); ++k) {
        Repeat repeat = longest_from(lists, i, list, at[at.size() - 1 - k]);
        if (repeat.count > best.count) best = std::move(repeat);
      }
    }
    const bool is_found = best.count >= fewest_lines;
    const std::size_t end = i + (is_found ? best.count : 1);
    for (; i < end; ++i) places.back()[lines[i].pattern].push_back(i);
    if (is_found) repeats.push_back(std::move(best));
  }
  return repeats;
}

}  // namespace underkeel::plan
