#include "doctor/advice_numbers.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "spec/value.h"

namespace underkeel::doctor {
namespace {

struct Number {
  Stretch at;
  double value = 0;
};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

struct CountedWord {
  std::string_view word;
  double value;
};
constexpr CountedWord counted_words[] = {
    {"one", 1},      {"two", 2}, {"three", 3}, {"four", 4},  {"six", 6}, {"eight", 8},
    {"sixteen", 16}, {"一", 1},  {"两", 2},    {"二", 2},    {"三", 3},  {"四", 4},
    {"五", 5},       {"六", 6},  {"八", 8},    {"十六", 16}, {"十", 10}};
constexpr std::string_view halves[] = {"halve", "halving", "half", "一半", "减半"};

/// A number in digits at `at`: "4,096", "4096", "4k", "1e9"; not a part of a name ("a100", "7b").
std::optional<Number> digits_at(std::string_view text, std::size_t at, bool counts_tokens) {
  if (!is_digit(text[at]) || (at > 0 && (is_of_name(text[at - 1]) || text[at - 1] == '.')))
    return std::nullopt;
  std::string digits;
  std::size_t end = at;
  while (end < text.size() && digits.size() < 12) {
    const bool is_group = text[end] == ',' && end + 3 < text.size() && is_digit(text[end + 1]) &&
                          is_digit(text[end + 2]) && is_digit(text[end + 3]) &&
                          (end + 4 == text.size() || !is_digit(text[end + 4]));
    const bool is_point = text[end] == '.' && end + 1 < text.size() && is_digit(text[end + 1]);
    if (!is_digit(text[end]) && !is_group && !is_point) break;
    if (!is_group) digits += text[end];
    ++end;
  }
  auto value = spec::parse_double(digits);
  if (!value) return std::nullopt;
  if (counts_tokens && end < text.size() && text[end] == 'k' &&
      (end + 1 == text.size() || !is_of_name(text[end + 1]))) {
    *value *= 1024;
    ++end;
  }
  return Number{.at = {at, end}, .value = *value};
}

std::optional<Number> word_at(std::string_view text, std::size_t at) {
  for (const CountedWord& each : counted_words) {
    if (!text.substr(at).starts_with(each.word)) continue;
    const std::size_t end = at + each.word.size();
    const bool is_english = std::isalpha(static_cast<unsigned char>(each.word[0])) != 0;
    if (is_english &&
        ((at > 0 && is_of_name(text[at - 1])) || (end < text.size() && is_of_name(text[end]))))
      continue;
    return Number{.at = {at, end}, .value = each.value};
  }
  return std::nullopt;
}

std::vector<Number> numbers_in(std::string_view sentence, const Stretch& clause,
                               Quantity quantity) {
  std::vector<Number> numbers;
  for (std::size_t at = clause.begin; at < clause.end;) {
    auto number = digits_at(sentence, at, quantity == Quantity::tokens);
    if (!number && quantity != Quantity::tokens) number = word_at(sentence, at);
    if (number) numbers.push_back(*number);
    at = number ? number->at.end : at + 1;
  }
  return numbers;
}

std::string_view behind(std::string_view sentence, const Number& number) {
  std::string_view rest = sentence.substr(number.at.end);
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '-')) rest.remove_prefix(1);
  return rest;
}

bool begins_with_one_of(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view each) { return text.starts_with(each); });
}

/// A number of gigabytes, per cent or times is none of a setting; nor is the name of a card or a model.
bool has_other_unit(std::string_view sentence, const Number& number) {
  if (number.at.end < sentence.size() &&
      begins_with_one_of(sentence.substr(number.at.end), {"b", "x", "倍", "%", "/"}))
    return true;
  return begins_with_one_of(behind(sentence, number),
                            {"gb", "gib", "mb", "g ", "g,", "%", "bit", "位", "gpu", "card", "卡",
                             "张卡", "times", "hour", "小时", "epoch"});
}

bool counts_gpus(std::string_view sentence, const Number& number) {
  std::string_view rest = behind(sentence, number);
  for (const std::string_view word :
       {"more ", "x ", "or more ", "additional ", "extra ", "further ", "nvidia "})
    if (rest.starts_with(word)) rest.remove_prefix(word.size());
  return begins_with_one_of(
      rest, {"gpu", "card", "a100", "h100", "h800", "a800", "h200", "3090", "4090", "v100", "a6000",
             "l40", "卡", "张", "块", "个gpu", "个 gpu"});
}

std::string_view before(std::string_view sentence, const Stretch& clause, const Number& number) {
  std::string_view text = sentence.substr(clause.begin, number.at.begin - clause.begin);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool ends_with_one_of(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view each) { return text.ends_with(each); });
}

/// "2x as many GPUs", "2 倍的显卡".
bool is_times(std::string_view sentence, const Number& number) {
  return begins_with_one_of(behind(sentence, number),
                            {"倍", "x as many", "x more", "x the ", "times as many", "times more",
                             "times the ", "times that many"});
}

/// "4 more GPUs", "add 4 GPUs", "再加 4 张卡": on top of those that there are.
bool is_addition(std::string_view sentence, const Stretch& clause, const Number& number) {
  return begins_with_one_of(behind(sentence, number),
                            {"more ", "additional ", "extra ", "further ", "gpus more", "gpu more",
                             "cards more", "card more"}) ||
         ends_with_one_of(before(sentence, clause, number),
                          {" add", "adding", "another", "additional", "extra", "plus", " by", "加",
                           "再用", "多用", "再上", "再买", "再来", "多"}) ||
         before(sentence, clause, number) == "add";
}

/// Of GPUs, where no count is said: "double the number of GPUs", "another GPU".
std::optional<Said> change_said(std::string_view text) {
  struct Word {
    std::string_view text;
    Said said;
  };
  constexpr Word words[] = {{"quadrupl", {.value = 4, .is_share = true}},
                            {"四倍", {.value = 4, .is_share = true}},
                            {"tripl", {.value = 3, .is_share = true}},
                            {"三倍", {.value = 3, .is_share = true}},
                            {"doubl", {.value = 2, .is_share = true}},
                            {"twice", {.value = 2, .is_share = true}},
                            {"加倍", {.value = 2, .is_share = true}},
                            {"翻倍", {.value = 2, .is_share = true}},
                            {"翻一番", {.value = 2, .is_share = true}},
                            {"两倍", {.value = 2, .is_share = true}},
                            {"another gpu", {.value = 1, .is_more = true}},
                            {"another card", {.value = 1, .is_more = true}},
                            {"one more gpu", {.value = 1, .is_more = true}}};
  for (const Word& each : words)
    if (text.find(each.text) != std::string_view::npos) return each.said;
  return std::nullopt;
}

bool fits(Quantity quantity, double value) {
  const auto is_within = [&](double least, double most) { return value >= least && value <= most; };
  const bool is_whole = value == static_cast<double>(static_cast<long long>(value));
  switch (quantity) {
    case Quantity::tokens:
      return is_whole && is_within(16, 1 << 24);
    case Quantity::batch:
    case Quantity::evaluation_batch:
    case Quantity::rank:
      return is_whole && is_within(1, 1 << 14);
    case Quantity::accumulation:
    case Quantity::checkpoints:
      return is_whole && is_within(1, 1 << 16);
    case Quantity::gpus:
      return is_whole && is_within(1, 1 << 17);
    case Quantity::bits:
      return value == 4 || value == 8;
    case Quantity::percent:
      return is_within(1, 100);
    case Quantity::none:
    case Quantity::stage:
      break;
  }
  return false;
}

/// "from 4096 to 2048", "8 -> 2", "从8改成2": the last of a chain.
std::size_t end_of_chain(std::string_view sentence, const std::vector<Number>& numbers,
                         std::size_t first) {
  std::size_t last = first;
  while (last + 1 < numbers.size()) {
    const Number& now = numbers[last];
    const Number& next = numbers[last + 1];
    const std::string_view gap = sentence.substr(now.at.end, next.at.begin - now.at.end);
    const bool leads =
        gap.size() <= 18 &&
        (gap.find(" to ") != std::string_view::npos || gap.find("->") != std::string_view::npos ||
         gap.find("到") != std::string_view::npos || gap.find("成") != std::string_view::npos ||
         gap.find("为") != std::string_view::npos);
    if (!leads) break;
    ++last;
  }
  return last;
}

/// How many GPUs there shall be.
std::optional<Said> gpus_said(std::string_view sentence, const Stretch& clause,
                              const std::vector<Number>& numbers) {
  for (const Number& number : numbers) {
    if (!fits(Quantity::gpus, number.value)) continue;
    if (is_times(sentence, number)) return Said{.value = number.value, .is_share = true};
    // "the number of GPUs to 8", "显卡加到 8".
    const bool follows_gpus =
        ends_with_one_of(before(sentence, clause, number),
                         {"gpus to", "cards to", "gpus by", "cards by", "gpus =", "gpus:"});
    if (follows_gpus || counts_gpus(sentence, number))
      return Said{.value = number.value, .is_more = is_addition(sentence, clause, number)};
  }
  return change_said(sentence.substr(clause.begin, clause.end - clause.begin));
}

std::optional<Said> stage_said(std::string_view sentence, const Stretch& clause) {
  std::optional<Said> first;
  for (std::size_t at = clause.begin; at + 1 < clause.end; ++at) {
    const bool is_stage = sentence[at] == 'z' && sentence[at + 1] >= '0' &&
                          sentence[at + 1] <= '3' && (at == 0 || !is_of_name(sentence[at - 1]));
    if (!is_stage) continue;
    const Said said{.value = static_cast<double>(sentence[at + 1] - '0')};
    std::string_view before = sentence.substr(clause.begin, at - clause.begin);
    while (before.ends_with(' ')) before.remove_suffix(1);
    // "from stage 3 to stage 2", "从 stage 3 换成 stage 2": the stage that is gone to.
    if (first && (before.ends_with(" to") || before.ends_with("->") || before.ends_with("到") ||
                  before.ends_with("成") || before.ends_with("为")))
      return said;
    if (!first) first = said;
  }
  return first;
}

}  // namespace

std::optional<Said> number_said(std::string_view sentence, const Stretch& clause,
                                const Stretch& subject, Quantity quantity) {
  if (quantity == Quantity::none) return std::nullopt;
  if (quantity == Quantity::stage) return stage_said(sentence, clause);
  const std::vector<Number> numbers = numbers_in(sentence, clause, quantity);
  if (quantity == Quantity::bits) {
    // "load_in_8bit", "int8": digits inside of names.
    const std::string_view text = sentence.substr(clause.begin, clause.end - clause.begin);
    for (const std::string_view eight : {"8bit", "8-bit", "8 bit", "int8", "8位", "8 位"})
      if (text.find(eight) != std::string_view::npos) return Said{.value = 8};
    return Said{.value = 4};
  }
  const auto has_half = [&] {
    const std::string_view text = sentence.substr(clause.begin, clause.end - clause.begin);
    return std::any_of(std::begin(halves), std::end(halves), [&](std::string_view each) {
      return text.find(each) != std::string_view::npos;
    });
  };
  if (quantity == Quantity::percent) {
    for (const Number& number : numbers)
      if (behind(sentence, number).starts_with('%') && fits(quantity, number.value))
        return Said{.value = number.value};
    return has_half() ? std::optional(Said{.value = 50}) : std::nullopt;
  }
  if (quantity == Quantity::gpus) {
    return gpus_said(sentence, clause, numbers);
  }
  const auto is_usable = [&](const Number& number) {
    return !has_other_unit(sentence, number) && fits(quantity, number.value);
  };
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i].at.begin < subject.end) continue;
    const Number& number = numbers[end_of_chain(sentence, numbers, i)];
    if (is_usable(number)) return Said{.value = number.value};
    if (is_usable(numbers[i])) return Said{.value = numbers[i].value};
  }
  if (has_half()) return Said{.value = 0.5, .is_share = true};
  for (std::size_t i = numbers.size(); i-- > 0;)
    if (numbers[i].at.end <= subject.begin && is_usable(numbers[i]))
      return Said{.value = numbers[i].value};
  return std::nullopt;
}

}  // namespace underkeel::doctor
