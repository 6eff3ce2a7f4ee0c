#include "doctor/advice_text.h"

#include <algorithm>
#include <cctype>

#include "base/printable.h"

namespace underkeel::doctor {
namespace {

// A longer "sentence" is no sentence: a file without stops is cut between words.
constexpr std::size_t most_sentence_bytes = 1200;
// A line of prose that is shorter was ended on purpose.
constexpr std::size_t least_broken_line = 55;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_small(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_blank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// Bytes of a mark at the front of `text` that ends a sentence; 0 for anything else.
std::size_t end_mark(std::string_view text) {
  for (const std::string_view mark : {"。", "！", "？", "；"})
    if (text.starts_with(mark)) return mark.size();
  const bool is_mark = std::string_view(".!?;").find(text.front()) != std::string_view::npos;
  return is_mark && (text.size() == 1 || is_blank(text[1])) ? 1 : 0;
}

/// Whether a line goes on in the next: it is long, has no end mark, and the next begins in the middle of prose.
bool goes_on(std::string_view line, std::string_view next) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  if (line.size() < least_broken_line || end_mark(line.substr(line.size() - 1)) > 0) return false;
  if (line.ends_with("。") || line.ends_with("！") || line.ends_with("？") || line.back() == ':')
    return false;
  return !next.empty() &&
         (is_small(next.front()) || static_cast<unsigned char>(next.front()) >= 0xE0);
}

/// Whether a sentence with a question mark wants to know, and does not recommend: "Why not use LoRA?", "试试 LoRA？".
bool asks(std::string_view sentence) {
  const std::string plain = normalised(sentence);
  const std::string_view text = plain;
  for (const std::string_view proposal :
       {"have you tried", "did you try", "have you considered", "tried ", "why not", "why don't",
        "why do not", "how about", "what about", "can you try", "could you try", "can't you",
        "couldn't you", "为什么不", "为何不", "何不", "试试", "试过", "怎么不"})
    if (text.find(proposal) != std::string_view::npos) return false;
  for (const std::string_view begin :
       {"do ",    "does ", "did ",   "is ",    "are ",    "should ", "can ",    "could ", "will ",
        "would ", "what ", "which ", "how ",   "when ",   "who ",    "where ",  "why ",   "has ",
        "have ",  "must ", "so do ", "so is ", "but do ", "but is ", "and do ", "and is "})
    if (text.starts_with(begin)) return true;
  for (const std::string_view word : {"吗", "么", "是否", "要不要", "是不是", "能不能", "会不会",
                                      "多少", "怎么", "为什么", "哪个", "需不需要"})
    if (text.find(word) != std::string_view::npos) return true;
  return false;
}

class SentenceReader {
 public:
  explicit SentenceReader(std::string_view text) : text_(text) {}

  std::vector<Sentence> read() {
    std::size_t line_begin = 0;
    for (std::size_t i = 0; i < text_.size();) {
      const char c = text_[i];
      if (c == '\n' || c == '\r') {
        const std::size_t next =
            i + 1 < text_.size() && c == '\r' && text_[i + 1] == '\n' ? i + 2 : i + 1;
        const bool is_broken = goes_on(text_.substr(line_begin, i - line_begin),
                                       text_.substr(std::min(next, text_.size())));
        if (is_broken)
          add(" ");
        else
          finish();
        ++line_;
        i = line_begin = next;
        continue;
      }
      if (const std::size_t mark = end_mark(text_.substr(i)); mark > 0) {
        const std::string_view sign = text_.substr(i, mark);
        finish(sign == "?" || sign == "？");
        i += mark;
        continue;
      }
      const std::size_t length = std::max<std::size_t>(1, utf8_length(text_.substr(i)));
      if (current_.text.size() >= most_sentence_bytes && (is_blank(c) || length > 1)) finish();
      if (current_.text.size() >= 2 * most_sentence_bytes) finish();
      add(text_.substr(i, length));
      i += length;
    }
    finish();
    return std::move(sentences_);
  }

 private:
  void add(std::string_view part) {
    if (current_.text.empty()) {
      if (is_blank(part.front())) return;
      current_.line = line_;
    }
    current_.text += part;
  }
  void finish(bool has_question_mark = false) {
    current_.is_question = has_question_mark && asks(current_.text);
    if (!current_.text.empty()) sentences_.push_back(std::move(current_));
    current_ = {};
  }

  std::string_view text_;
  int line_ = 1;
  Sentence current_;
  std::vector<Sentence> sentences_;
};

/// One spelling of typographic signs; "" for what is left out.
struct Sign {
  std::string_view from, to;
};
constexpr Sign signs[] = {
    {"\u2019", "'"}, {"\u2018", "'"},  {"\u201C", "\""},     {"\u201D", "\""}, {"\u2013", "-"},
    {"\u2014", "-"}, {"\u2011", "-"},  {"\u2010", "-"},      {"\u2212", "-"},  {"\u00A0", " "},
    {"\u3000", " "}, {"\u200B", ""},   {"\u200C", ""},       {"\u200D", ""},   {"\uFEFF", ""},
    {"\u2060", ""},  {"\u3002", ". "}, {"\u3001", "\u3001"}, {"\u2192", "->"}, {"\u00D7", "x"},
};

/// Lower case and plain signs; stages are still as they were.
std::string plain_letters(std::string_view text) {
  std::string plain;
  const auto add = [&](std::string_view part) {
    for (const char c : part) {
      if (is_blank(c)) {
        if (!plain.empty() && plain.back() != ' ') plain += ' ';
      } else {
        plain += static_cast<char>(
            static_cast<unsigned char>(c) < 0x80 ? std::tolower(static_cast<unsigned char>(c)) : c);
      }
    }
  };
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    if (byte < 0x80) {
      const bool is_left_out = text.front() == '*' || text.front() == '`' ||
                               (std::iscntrl(byte) && !is_blank(text.front()));
      if (!is_left_out) add(text.substr(0, 1));
      text.remove_prefix(1);
      continue;
    }
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    const std::string_view letter = text.substr(0, length);
    text.remove_prefix(length);
    // Letters and signs of full width, U+FF01 to U+FF5E, are ASCII by another number.
    if (length == 3 && letter[0] == '\xEF' && (letter[1] == '\xBC' || letter[1] == '\xBD')) {
      const int code = ((letter[1] & 0x3F) << 6 | (letter[2] & 0x3F)) + 0x20 - 0xF00;
      if (code > 0x20 && code < 0x7F) {
        const char c = static_cast<char>(code);
        add(std::string_view(&c, 1));
        continue;
      }
    }
    const auto sign = std::find_if(std::begin(signs), std::end(signs),
                                   [&](const Sign& each) { return each.from == letter; });
    add(sign == std::end(signs) ? letter : sign->to);
  }
  return plain;
}

std::size_t skip_any(std::string_view text, std::size_t at, std::string_view of) {
  while (at < text.size() && of.find(text[at]) != std::string_view::npos) ++at;
  return at;
}

/// The length of a spelling of a stage at `at`, and its number: "zero-3", "zero stage 2", "stage 3", "z-3", "阶段3".
struct StageName {
  std::size_t length = 0;
  char digit = '0';
};
StageName stage_at(std::string_view text, std::size_t at) {
  std::size_t p = at;
  const auto take = [&](std::string_view word) {
    if (!text.substr(p).starts_with(word)) return false;
    p += word.size();
    return true;
  };
  take("deepspeed-");
  bool is_stage = false;
  if (take("zero")) {
    is_stage = true;
    p = skip_any(text, p, " -_=:");
    if (take("stage") || take("阶段")) p = skip_any(text, p, " -_=:");
  } else if (take("stage") || take("阶段")) {
    is_stage = true;
    p = skip_any(text, p, " -=:");
  } else if (take("z-") || take("z")) {
    is_stage = true;
  }
  if (!is_stage || p >= text.size() || text[p] < '0' || text[p] > '3') return {};
  const bool ends = p + 1 == text.size() || !is_of_name(text[p + 1]);
  const bool is_fraction = p + 2 < text.size() && text[p + 1] == '.' && is_digit(text[p + 2]);
  if (!ends || is_fraction) return {};
  return {p + 1 - at, text[p]};
}

}  // namespace

std::vector<Sentence> sentences_of(std::string_view text) {
  return SentenceReader(text).read();
}

bool has_content(std::string_view sentence) {
  int letters = 0;
  for (const char c : sentence) {
    if (static_cast<unsigned char>(c) >= 0x80) return true;
    if (std::isalpha(static_cast<unsigned char>(c)) && ++letters == 2) return true;
  }
  return false;
}

std::string normalised(std::string_view text) {
  const std::string letters = plain_letters(text);
  std::string plain;
  for (std::size_t at = 0; at < letters.size();) {
    const bool begins = at == 0 || !is_of_name(letters[at - 1]);
    const StageName stage = begins ? stage_at(letters, at) : StageName{};
    if (stage.length > 0) {
      plain += 'z';
      plain += stage.digit;
      at += stage.length;
    } else {
      plain += letters[at++];
    }
  }
  return plain;
}

}  // namespace underkeel::doctor
