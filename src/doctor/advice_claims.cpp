#include "doctor/advice_claims.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "doctor/advice_numbers.h"
#include "spec/value.h"

namespace underkeel::doctor {
namespace {

constexpr double card_unit = 1024.0 * 1024 * 1024;  // cards and memory modules are sold in GiB

using Words = std::initializer_list<std::string_view>;

bool has_one_of(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view each) {
    return text.find(each) != std::string_view::npos;
  });
}
bool starts_with_one_of(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view each) { return text.starts_with(each); });
}
bool stops_with_one_of(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view each) { return text.ends_with(each); });
}

/// A number of gigabytes and what stands around it.
struct Gigabytes {
  Stretch at;
  double count = 0;
  std::string_view before, after;  // blanks stripped
};

std::optional<Gigabytes> gigabytes_at(std::string_view text, std::size_t at) {
  const auto is_figure = [&](std::size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  if (!is_figure(at) || (at > 0 && (is_of_name(text[at - 1]) || text[at - 1] == '.')))
    return std::nullopt;
  std::size_t end = at;
  while (is_figure(end) || (end < text.size() && text[end] == '.' && is_figure(end + 1))) ++end;
  const auto count = spec::parse_double(text.substr(at, end - at));
  while (end < text.size() && (text[end] == ' ' || text[end] == '-')) ++end;
  std::size_t stop = end;
  for (const std::string_view unit : {"gib", "gb", "g"})
    if (text.substr(end).starts_with(unit)) {
      stop = end + unit.size();
      break;
    }
  if (!count || *count <= 0 || stop == end || (stop < text.size() && is_of_name(text[stop])))
    return std::nullopt;
  Gigabytes found{
      .at = {at, stop}, .count = *count, .before = text.substr(0, at), .after = text.substr(stop)};
  while (found.before.ends_with(' ') || found.before.ends_with('-')) found.before.remove_suffix(1);
  while (found.after.starts_with(' ') || found.after.starts_with('-')) found.after.remove_prefix(1);
  return found;
}

std::vector<Gigabytes> gigabytes_in(std::string_view text) {
  std::vector<Gigabytes> all;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (auto found = gigabytes_at(text, at)) {
      at = found->at.end - 1;
      all.push_back(*found);
    }
  return all;
}

bool is_of_host(const Gigabytes& each) {
  return starts_with_one_of(each.after,
                            {"ram", "of ram", "of host", "host", "of cpu", "cpu mem", "of system",
                             "system mem", "主机", "内存", "的内存", "的主机", "of main"}) ||
         stops_with_one_of(each.before, {"ram of", "ram is", "ram:", "内存", "内存只有", "内存有",
                                         "内存为", "memory of"});
}

bool is_of_card(const Gigabytes& each) {
  return starts_with_one_of(each.after, {"card", "gpu", "a100", "h100", "a800", "h800", "v100",
                                         "卡", "的卡", "显卡", "的显卡", "显存的"}) ||
         stops_with_one_of(each.before, {"a100", "h100", "a800", "h800", "v100", "卡", "fits in",
                                         "fit in", "fits into", "fit into", "fits within",
                                         "card with", "gpu with", "card of", "gpu of"});
}

/// The last bytes before it, where a verb stands that it belongs to.
std::string_view verb_of(const Gigabytes& each) {
  constexpr std::size_t most_between = 30;
  return each.before.size() <= most_between ? each.before
                                            : each.before.substr(each.before.size() - most_between);
}

/// "needs 80 GB of RAM" says how much is needed, "a 24 GB card" and "only 64 GB RAM" what there is.
bool is_need(const Gigabytes& each) {
  if (is_of_card(each)) return false;
  const std::string_view verb = verb_of(each);
  if (has_one_of(verb, {" have ", " has ", "只有", "仅有", "if you"})) return false;
  return has_one_of(verb,
                    {"need", "take", "requir", " use", "consum", "占", "需", "要", "用", "吃"});
}

SaidAmount::Bound bound_of(const Gigabytes& each) {
  using enum SaidAmount::Bound;
  constexpr std::size_t near = 14;
  const std::string_view before =
      each.before.size() <= near ? each.before : each.before.substr(each.before.size() - near);
  if (has_one_of(before, {"less than", "under", "below", "at most", "up to", "fewer", "少于",
                          "低于", "不到", "小于", "最多", "不超过", "<"}) ||
      starts_with_one_of(each.after, {"or less", "以内", "以下"}))
    return at_most;
  if (has_one_of(before, {"more than", "over", "above", "at least", "超过", "大于", "至少", ">"}) ||
      starts_with_one_of(each.after, {"or more", "以上"}))
    return at_least;
  return about;
}

/// Where the first of the alternatives stands at or behind `from`.
std::size_t side_at(std::string_view text, std::string_view side, std::size_t from) {
  std::size_t best = std::string_view::npos;
  while (!side.empty()) {
    const std::size_t cut = side.find('/');
    best = std::min(best, text.find(side.substr(0, cut), from));
    side = cut == std::string_view::npos ? std::string_view{} : side.substr(cut + 1);
  }
  return best;
}

/// 1: more, -1: less, 0: nothing of this scale.
int degree_said(std::string_view text, Scale scale) {
  const bool has_less = has_one_of(
      text, {"less memory", "less gpu mem", "less vram", "uses less", "use less", "needs less",
             "need less", "takes less", "smaller", "更少", "更省", "更小", "省显存", "少占"});
  const bool has_more =
      has_one_of(text, {"more memory", "more gpu mem", "more vram", "uses more", "use more",
                        "needs more", "need more", "takes more", "much more", "larger", "更多",
                        "更占", "更费", "更大", "多占", "占得多"});
  switch (scale) {
    case Scale::memory:
      return has_less ? -1 : has_more ? 1 : 0;
    case Scale::speed:
      return has_one_of(text, {"slower", "慢"})              ? -1
             : has_one_of(text, {"faster", "quicker", "快"}) ? 1
                                                             : 0;
    case Scale::merit:
      if (has_one_of(text, {"worse", "less safe", "差", "更糟"})) return -1;
      if (has_one_of(text, {"better", "safer", "prefer", "好", "稳", "安全"})) return 1;
      return has_more ? -1 : has_less ? 1 : 0;  // of a buffer
    case Scale::none:
      break;
  }
  return 0;
}

}  // namespace

SaidMachine machine_said(std::string_view sentence) {
  SaidMachine machine;
  const auto gpus = number_said(sentence, {0, sentence.size()}, {0, 0}, Quantity::gpus);
  if (gpus && !gpus->is_share)
    machine.ranks = gpus->value;
  else if (has_one_of(sentence, {"single gpu", "single card", "单卡", "单张", "单块"}))
    machine.ranks = 1;
  for (const Gigabytes& each : gigabytes_in(sentence)) {
    if (is_need(each)) continue;
    if (is_of_host(each))
      machine.host_bytes = each.count * card_unit;
    else if (is_of_card(each))
      machine.card_bytes = each.count * card_unit;
  }
  return machine;
}

std::optional<SaidAmount> amount_said(std::string_view sentence, const std::vector<Stretch>& own) {
  for (const Gigabytes& each : gigabytes_in(sentence)) {
    const bool is_own = std::any_of(own.begin(), own.end(), [&](const Stretch& word) {
      return word.begin < each.at.end && each.at.begin < word.end;
    });
    if (!is_own && is_need(each))
      return SaidAmount{
          .bound = bound_of(each), .bytes = each.count * 1e9, .is_of_host = is_of_host(each)};
  }
  return std::nullopt;
}

void suppose(const SaidMachine& machine, MemoryCase& memory) {
  if (machine.card_bytes) memory.limits.device = machine.card_bytes;
  if (machine.host_bytes) memory.limits.host = machine.host_bytes;
  if (!machine.ranks) return;
  const bool has_nodes = memory.ranks > memory.ranks_on_node;
  memory.ranks = *machine.ranks;
  memory.ranks_on_node = has_nodes ? std::min(memory.ranks_on_node, memory.ranks) : memory.ranks;
}

std::optional<bool> first_has_more(std::string_view sentence, std::string_view sides, Scale scale) {
  const int degree = degree_said(sentence, scale);
  if (degree == 0) return std::nullopt;
  const std::size_t cut = sides.find('|');
  const std::string_view left = sides.substr(0, cut), right = sides.substr(cut + 1);
  constexpr std::size_t nowhere = std::string_view::npos;
  const std::size_t left_at = side_at(sentence, left, 0), right_at = side_at(sentence, right, 0);
  if (left_at == nowhere || right_at == nowhere) return std::nullopt;
  bool is_left_subject = left_at < right_at;
  // "与 A 相比，B" and "compared to A, B" speak of B; "A than B" and "A 比 B" of A.
  for (const std::string_view mark :
       {"compared to ", "compared with ", "relative to ", "than ", "相对于", "相比于", "比"}) {
    const std::size_t at = sentence.find(mark);
    if (at == nowhere) continue;
    const bool is_behind = mark == "比" && at >= 3 && sentence.substr(at - 3, 3) == "相" &&
                           at > std::min(left_at, right_at) &&
                           has_one_of(sentence, {"与", "和", "跟"});
    if (is_behind) {
      is_left_subject = left_at > right_at;
    } else {
      const std::size_t next_left = side_at(sentence, left, at);
      const std::size_t next_right = side_at(sentence, right, at);
      if (next_left == nowhere && next_right == nowhere) continue;
      is_left_subject = next_right < next_left;
    }
    break;
  }
  return is_left_subject == (degree > 0);
}

}  // namespace underkeel::doctor
