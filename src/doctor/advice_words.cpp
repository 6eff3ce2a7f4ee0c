#include "doctor/advice_words.h"

#include <algorithm>

#include "base/check.h"

namespace underkeel::doctor {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Calls `use` with the parts between separators, blanks stripped.
template <class Use>
void for_parts(std::string_view text, char separator, Use use) {
  while (true) {
    const std::size_t at = text.find(separator);
    use(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + 1);
  }
}

std::size_t pair_at(std::string_view text, std::size_t at) {
  return static_cast<std::size_t>(static_cast<unsigned char>(text[at])) << 8 |
         static_cast<unsigned char>(text[at + 1]);
}

}  // namespace

AdviceWords::AdviceWords(const std::vector<std::string_view>& patterns) : bucket_(1 << 16, 0) {
  of_two_bytes_.emplace_back();  // of pairs that begin no word
  for (const std::string_view pattern : patterns) {
    std::vector<Group> groups;
    if (!pattern.empty())
      for_parts(pattern, '&', [&](std::string_view part) {
        Group group{.words = {}, .is_forbidden = part.starts_with('!')};
        if (group.is_forbidden) part.remove_prefix(1);
        for_parts(part, '|', [&](std::string_view word) { group.words.push_back(index_of(word)); });
        groups.push_back(std::move(group));
      });
    patterns_.push_back(std::move(groups));
  }
  seen_in_.assign(words_.size(), 0);
}

std::uint32_t AdviceWords::index_of(std::string_view written) {
  const auto known = std::find(written_.begin(), written_.end(), written);
  if (known != written_.end()) return static_cast<std::uint32_t>(known - written_.begin());
  const auto index = static_cast<std::uint32_t>(words_.size());
  Word word{.text = written, .begins = written.starts_with('~'), .ends = written.ends_with('~')};
  if (word.begins) word.text.remove_prefix(1);
  if (word.ends) word.text.remove_suffix(1);
  UK_CHECK(!word.text.empty(), "a pattern of advice has an empty word");
  written_.push_back(written);
  words_.push_back(word);
  if (word.text.size() == 1) {
    of_one_byte_[static_cast<unsigned char>(word.text[0])].push_back(index);
    return index;
  }
  std::uint16_t& bucket = bucket_[pair_at(word.text, 0)];
  if (bucket == 0) {
    bucket = static_cast<std::uint16_t>(of_two_bytes_.size());
    of_two_bytes_.emplace_back();
  }
  of_two_bytes_[bucket].push_back(index);
  return index;
}

void AdviceWords::read(std::string_view sentence) {
  ++sentence_;
  hits_.clear();
  const auto take = [&](std::size_t at, std::uint32_t index) {
    const Word& word = words_[index];
    const std::size_t end = at + word.text.size();
    if (sentence.substr(at, word.text.size()) != word.text) return;
    if (word.begins && at > 0 && is_of_name(sentence[at - 1])) return;
    if (word.ends && end < sentence.size() && is_of_name(sentence[end])) return;
    seen_in_[index] = sentence_;
    hits_.push_back({index, {at, end}});
  };
  for (std::size_t at = 0; at < sentence.size(); ++at) {
    for (const std::uint32_t index : of_one_byte_[static_cast<unsigned char>(sentence[at])])
      take(at, index);
    if (at + 1 == sentence.size()) break;
    for (const std::uint32_t index : of_two_bytes_[bucket_[pair_at(sentence, at)]]) take(at, index);
  }
}

bool AdviceWords::has_group(const Group& group) const {
  return std::any_of(group.words.begin(), group.words.end(),
                     [&](std::uint32_t word) { return seen_in_[word] == sentence_; });
}

bool AdviceWords::has(std::size_t pattern) const {
  const std::vector<Group>& groups = patterns_[pattern];
  return !groups.empty() && std::all_of(groups.begin(), groups.end(), [&](const Group& group) {
    return has_group(group) != group.is_forbidden;
  });
}

std::vector<std::vector<Stretch>> AdviceWords::places(std::size_t pattern) const {
  std::vector<std::vector<Stretch>> places;
  for (const Group& group : patterns_[pattern]) {
    if (group.is_forbidden) continue;
    std::vector<Stretch>& of_group = places.emplace_back();
    for (const Hit& hit : hits_)
      if (std::find(group.words.begin(), group.words.end(), hit.word) != group.words.end())
        of_group.push_back(hit.at);
  }
  return places;
}

}  // namespace underkeel::doctor
