#include "data/tokenizer/pre_tokenizer.h"

#include <utility>

#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/word_cutter.h"

namespace underkeel::data {
namespace {

// The digits pre-tokenizer asks Rust's standard library, which knows the numbers of Unicode 17.
constexpr std::string_view digit_pattern = R"([\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}])";

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool matches = false;
};

// Joins neighbouring spans as `behavior` says; a removed span becomes empty.
std::vector<Span> join_spans(const std::vector<Span>& spans, SplitBehavior behavior) {
  std::vector<Span> joined;
  switch (behavior) {
    case SplitBehavior::isolated:
      return spans;
    case SplitBehavior::removed:
      for (const Span& span : spans)
        if (!span.matches) joined.push_back(span);
      return joined;
    case SplitBehavior::contiguous:
      for (const Span& span : spans) {
        if (!joined.empty() && joined.back().matches == span.matches)
          joined.back().end = span.end;
        else
          joined.push_back(span);
      }
      return joined;
    case SplitBehavior::merged_with_previous: {
      bool previous_matched = false;
      for (const Span& span : spans) {
        if (span.matches && !previous_matched && !joined.empty())
          joined.back().end = span.end;
        else
          joined.push_back(span);
        previous_matched = span.matches;
      }
      return joined;
    }
    case SplitBehavior::merged_with_next: {
      bool next_matched = false;
      for (std::size_t index = spans.size(); index-- > 0;) {
        const Span& span = spans[index];
        if (span.matches && !next_matched && !joined.empty())
          joined.back().begin = span.begin;
        else
          joined.push_back(span);
        next_matched = span.matches;
      }
      return {joined.rbegin(), joined.rend()};
    }
  }
  return spans;
}

class Split final : public PreTokenizer {
 public:
  Split(Regex regex, SplitBehavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}

  Result<Pieces> split(Pieces pieces) const override {
    Pieces result;
    result.starts_text = pieces.starts_text;
    result.text.reserve(pieces.text.size());
    result.ends.reserve(pieces.text.size() / 4 + pieces.ends.size());
    std::vector<Span> spans;
    for (std::size_t index = 0; index < pieces.ends.size(); ++index) {
      const std::string_view text = pieces.piece(index);
      spans.clear();
      std::size_t done = 0;
      UK_TRY_VOID(regex_.for_each_match(text, [&](Match match) {
        if (done != match.begin) spans.push_back({done, match.begin, invert_});
        spans.push_back({match.begin, match.end, !invert_});
        done = match.end;
      }));
      if (done != text.size()) spans.push_back({done, text.size(), invert_});
      if (behavior_ != SplitBehavior::isolated) spans = join_spans(spans, behavior_);
      if (index == 0 && (spans.empty() || spans.front().begin > 0)) result.starts_text = false;
      for (const Span& span : spans) result.append(text.substr(span.begin, span.end - span.begin));
    }
    return result;
  }

 private:
  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, std::unique_ptr<PreTokenizer> words)
      : add_prefix_space_(add_prefix_space), words_(std::move(words)) {}

  Result<Pieces> split(Pieces pieces) const override {
    if (add_prefix_space_) {
      Pieces prefixed;
      for (std::size_t index = 0; index < pieces.ends.size(); ++index) {
        const std::string_view piece = pieces.piece(index);
        prefixed.append(piece.starts_with(' ') ? std::string(piece) : " " + std::string(piece));
      }
      prefixed.starts_text = pieces.starts_text;
      pieces = std::move(prefixed);
    }
    if (words_ != nullptr) {
      UK_TRY(words, words_->split(std::move(pieces)));
      pieces = std::move(words);
    }
    Pieces mapped;
    mapped.starts_text = pieces.starts_text;
    mapped.text.reserve(pieces.text.size() + pieces.text.size() / 2);
    mapped.ends.reserve(pieces.ends.size());
    std::size_t begin = 0;
    for (const std::size_t end : pieces.ends) {
      for (; begin < end; ++begin)
        mapped.text += byte_character(static_cast<unsigned char>(pieces.text[begin]));
      mapped.ends.push_back(mapped.text.size());
    }
    return mapped;
  }

 private:
  bool add_prefix_space_;
  std::unique_ptr<PreTokenizer> words_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) : parts_(std::move(parts)) {}

  Result<Pieces> split(Pieces pieces) const override {
    for (const auto& part : parts_) {
      UK_TRY(next, part->split(std::move(pieces)));
      pieces = std::move(next);
    }
    return pieces;
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_split(Regex regex, SplitBehavior behavior, bool invert) {
  return std::make_unique<Split>(std::move(regex), behavior, invert);
}

Result<std::unique_ptr<PreTokenizer>> make_byte_level(ByteLevelOptions options) {
  std::unique_ptr<PreTokenizer> words;
  if (options.use_regex) {
    static const Result<Regex> compiled = Regex::compile(text_of(WordPattern::gpt2));
    UK_TRY(regex, compiled);
    words = make_split(std::move(regex), SplitBehavior::isolated, false);
  }
  return std::make_unique<ByteLevel>(options.add_prefix_space, std::move(words));
}

Result<std::unique_ptr<PreTokenizer>> make_digits(bool individual_digits) {
  UK_TRY(regex, Regex::compile(digit_pattern));
  return make_split(std::move(regex),
                    individual_digits ? SplitBehavior::isolated : SplitBehavior::contiguous, false);
}

std::unique_ptr<PreTokenizer> make_pre_tokenizer_sequence(
    std::vector<std::unique_ptr<PreTokenizer>> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}

}  // namespace underkeel::data
