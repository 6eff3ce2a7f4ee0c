#include "doctor/advice_clauses.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/advice_turns.h"

namespace underkeel::doctor {
namespace {

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// Whether `words` of one of these tables stand at `at`, and how long they are there.
bool stands_at(std::string_view text, std::size_t at, std::string_view words, std::size_t& length) {
  const bool begins = words.starts_with('~'), ends = words.ends_with('~');
  if (begins) words.remove_prefix(1);
  if (ends) words.remove_suffix(1);
  if (!text.substr(at).starts_with(words)) return false;
  const std::size_t stop = at + words.size();
  if (begins && at > 0 && is_of_name(text[at - 1])) return false;
  if (ends && stop < text.size() && is_of_name(text[stop])) return false;
  length = words.size();
  return true;
}

/// Entries of a table by the first byte of their words: a text is asked at each of its bytes.
template <class Entry>
class ByFirstByte {
 public:
  template <std::size_t n>
  explicit ByFirstByte(const Entry (&entries)[n]) {
    for (const Entry& entry : entries)
      of_byte_[static_cast<unsigned char>(entry.words[entry.words.front() == '~' ? 1 : 0])]
          .push_back(&entry);
  }
  /// The longest at `at`; nullptr when there is none.
  const Entry* at(std::string_view text, std::size_t at, std::size_t& length) const {
    const Entry* best = nullptr;
    length = 0;
    for (const Entry* entry : of_byte_[static_cast<unsigned char>(text[at])]) {
      std::size_t own = 0;
      if (!stands_at(text, at, entry->words, own) || own <= length) continue;
      best = entry;
      length = own;
    }
    return best;
  }

 private:
  std::array<std::vector<const Entry*>, 256> of_byte_;
};

const Turn* turn_at(std::string_view text, std::size_t at, std::size_t& length) {
  static const ByFirstByte<Turn> table(turns);
  return table.at(text, at, length);
}

/// What begins a clause, and whether it is a condition then.
struct Joint {
  std::string_view words;
  bool is_kept = true;  // the words belong to the clause that begins
  bool is_condition = false;
};
constexpr Joint joints[] = {
    {", ", false},
    {",", false},
    {";", false},
    {"(", false},
    {")", false},
    {" - ", false},
    {"?", false},
    {"!", false},
    {"~but~"},
    {"~however~"},
    {"~because~"},
    {"~so~"},
    {"~otherwise~"},
    {"~whereas~"},
    {"~nor~"},
    {"也不"},
    {"也别"},
    {"~instead of~"},
    {"~rather than~"},
    {"~and don't~"},
    {"~and do not~"},
    {"~and never~"},
    {"~and not~"},
    {"~and disable"},
    {"~and turn~"},
    {"~and switch~"},
    {"~and remove~"},
    {"~and use~"},
    {"~and enable~"},
    {"~and set~"},
    {"~then~"},
    {"~if~", true, true},
    {"~when~", true, true},
    {"~unless~", true, true},
    {"~as long as~", true, true},
    {"~even without~", true, false},
    {"~although~"},
    {"~though~"},
    {"~while~"},
    {"但是"},
    {"但"},
    {"不过"},
    {"而是"},
    {"而不是"},
    {"而非"},
    {"因为"},
    {"所以"},
    {"否则"},
    {"不然"},
    {"然后"},
    {"如果", true, true},
    {"假如", true, true},
    {"若", true, true},
    {"要是", true, true},
    {"除非", true, true},
    {"一旦", true, true},
    {"只要", true, true},
};

/// Words before "not" that it belongs to; behind others ("use X not Y") it begins a clause of its own.
bool takes_not(std::string_view before) {
  while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
  const std::size_t blank = before.rfind(' ');
  const std::string_view word = blank == std::string_view::npos ? before : before.substr(blank + 1);
  constexpr std::string_view words[] = {
      "",       "is",    "are",    "was",        "were",     "be",        "do",     "does",
      "did",    "will",  "would",  "can",        "could",    "must",      "need",   "should",
      "shall",  "may",   "might",  "has",        "have",     "had",       "am",     "it's",
      "that's", "you",   "really", "definitely", "probably", "certainly", "also",   "still",
      "just",   "or",    "please", "often",      "usually",  "simply",    "better", "and",
      "why",    "ought", "not"};
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

const Joint* joint_at(std::string_view text, std::size_t at, std::size_t& length) {
  static const ByFirstByte<Joint> table(joints);
  return table.at(text, at, length);
}

/// Bad ends: who says "without X it fails" speaks for X.
bool threatens(std::string_view text) {
  constexpr std::string_view words[] = {
      "oom",  "out of memory", "crash",   "~fail",  "explode", "not fit", "n't fit", "爆",   "溢出",
      "不够", "~incomplete",   "~broken", "不完整", "损坏",    "不足",    "跑不",    "报错", "崩"};
  std::size_t length = 0;
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const std::string_view word : words)
      if (stands_at(text, at, word, length)) return true;
  return false;
}

/// A list that goes on: "LoRA", "or flash attention"; what holds for the items before it holds for it too.
bool is_item(std::string_view text) {
  constexpr std::string_view verbs[] = {
      "~use",    "~try",   "~enable", "~set~",  "~is~",  "~are~", "~do",    "~turn",
      "~switch", "~lower", "~reduce", "~need",  "~fit",  "~go~",  "~will~", "~can",
      "~buy",    "~add",   "~should", "~just~", "~help", "~take", "~it~",   "~you~",
      "~only~",  "用",     "开",      "要",     "就",    "换",    "把",     "改",
      "是",      "会",     "能",      "可",     "调",    "降",    "加",     "设"};
  std::size_t words = 0, length = 0;
  bool was_blank = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const std::string_view verb : verbs)
      if (stands_at(text, at, verb, length)) return false;
    if (!is_space(text[at]) && was_blank) ++words;
    was_blank = is_space(text[at]);
  }
  return words > 0 && words <= 6 && text.size() <= 60;
}

std::vector<Cue> cues_of(std::string_view sentence, const Stretch& clause) {
  std::vector<Cue> cues;
  for (std::size_t at = clause.begin; at < clause.end;) {
    std::size_t length = 0;
    const Turn* turn = turn_at(sentence, at, length);
    if (turn == nullptr) {
      ++at;
      continue;
    }
    if (turn->kind != 0)
      cues.push_back({.at = {at, at + length},
                      .switches_off = turn->kind == 2,
                      .is_value = turn->words == "~false~",
                      .is_of_effect = turn->kind == 3,
                      .is_of_fit = turn->kind == 4});
    at += length;
  }
  return cues;
}

}  // namespace

std::vector<Clause> clauses_of(std::string_view sentence) {
  std::vector<Clause> clauses;
  std::size_t begin = 0;
  bool is_condition = false, is_comma = false;
  const auto finish = [&](std::size_t end) {
    if (end <= begin) return;
    Clause clause{.at = {begin, end}};
    const std::string_view text = sentence.substr(begin, end - begin);
    if (!is_condition && text.find("的话") == std::string_view::npos)
      clause.cues = cues_of(sentence, clause.at);
    // "without X it fails", "without X, it fails", "不开X就会爆", "不开X，就会爆": said for X.
    std::size_t length = 0;
    const auto of_words = [](const Cue& cue) { return !cue.is_of_fit; };
    const auto single = std::find_if(clause.cues.begin(), clause.cues.end(), of_words);
    if (std::count_if(clause.cues.begin(), clause.cues.end(), of_words) == 1) {
      const std::string_view rest = sentence.substr(begin);
      const bool is_without = sentence.substr(single->at.begin).starts_with("without") ||
                              (stands_at(sentence, single->at.begin, "不", length) &&
                               (rest.find("就") != std::string_view::npos ||
                                rest.find("会") != std::string_view::npos));
      if (is_without && threatens(sentence.substr(single->at.end))) clause.cues.erase(single);
    }
    if (is_comma && !clauses.empty() && clause.cues.empty() && is_item(text))
      for (const Cue& cue : clauses.back().cues) clause.cues.push_back(cue);
    clauses.push_back(std::move(clause));
    begin = end;
  };
  for (std::size_t at = 0; at < sentence.size();) {
    std::size_t turn_length = 0, length = 0;
    const Turn* turn = turn_at(sentence, at, turn_length);
    const Joint* joint = joint_at(sentence, at, length);
    if (turn != nullptr && turn->kind == 0 && turn_length > length) {
      at += turn_length;
      continue;
    }
    if (joint != nullptr) {
      finish(at);
      is_condition = joint->is_condition;
      is_comma = joint->words.front() == ',';
      at += length;
      if (!joint->is_kept) begin = at;
      continue;
    }
    if (turn != nullptr && turn->words == "~not~" && at > begin &&
        !takes_not(sentence.substr(begin, at - begin)))
      finish(at);
    at += turn != nullptr ? turn_length : 1;
  }
  finish(sentence.size());
  return clauses;
}

bool is_denied(const Clause& clause, const std::vector<Stretch>& words, const Heard& heard) {
  // "use_reentrant=False" behind a key says nothing of that key.
  constexpr std::size_t most_between = 10;
  const auto is_value_of_one = [&](const Cue& cue) {
    return std::any_of(words.begin(), words.end(), [&](const Stretch& each) {
      return each.end <= cue.at.begin && cue.at.begin - each.end <= most_between;
    });
  };
  std::size_t count = 0;
  for (const Cue& cue : clause.cues) {
    if (cue.switches_off && !heard.switches) continue;
    if (cue.is_of_fit && !heard.fit) continue;
    if (cue.is_value && !is_value_of_one(cue)) continue;
    // "不会爆" is one thing, and "OOM" is a word of what is said to fit.
    const bool is_of_advice =
        !cue.is_of_fit && std::any_of(words.begin(), words.end(), [&](const Stretch& each) {
          return each.begin <= cue.at.begin && cue.at.end <= each.end;
        });
    if (!is_of_advice) ++count;
  }
  return count % 2 == 1;
}

bool rejects(std::string_view sentence, const Clause& clause) {
  std::string_view text = sentence.substr(clause.at.begin, clause.at.end - clause.at.begin);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  for (const std::string_view word : {"but ", "however ", "但是", "但", "其实", "不过"})
    if (text.starts_with(word)) text.remove_prefix(word.size());
  constexpr std::string_view begins[] = {"这",        "那",    "this ",    "that ",  "that's ",
                                         "it is ",    "it's ", "并非如此", "并不是", "并不对",
                                         "which is ", "不对",  "错了"};
  constexpr std::string_view verdicts[] = {
      "错",       "不对",     "不正确", "不成立",       "误",          "谣言",
      "并非",     "不是真的", "并不是", "~wrong~",      "~false~",     "~myth~",
      "~untrue~", "not true", "not so", "not the case", "~incorrect~", "~nonsense~"};
  if (std::none_of(std::begin(begins), std::end(begins),
                   [&](std::string_view each) { return text.starts_with(each); }))
    return false;
  std::size_t length = 0;
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const std::string_view verdict : verdicts)
      if (stands_at(text, at, verdict, length)) return true;
  return false;
}

}  // namespace underkeel::doctor
