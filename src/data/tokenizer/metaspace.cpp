#include "data/tokenizer/metaspace.h"

#include <utility>

namespace underkeel::data {
namespace {

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(MetaspaceOptions options, std::unique_ptr<PreTokenizer> words)
      : options_(std::move(options)), words_(std::move(words)) {}

  Result<Pieces> split(Pieces pieces) const override {
    Pieces marked;
    marked.starts_text = pieces.starts_text;
    marked.text.reserve(pieces.text.size() + pieces.text.size() / 3 + options_.mark.size());
    for (std::size_t index = 0; index < pieces.ends.size(); ++index) {
      const std::string_view piece = pieces.piece(index);
      const bool begins_marked = piece.starts_with(' ') || piece.starts_with(options_.mark);
      const bool prepends =
          options_.prepend == Prepend::always ||
          (options_.prepend == Prepend::first && index == 0 && pieces.starts_text);
      if (prepends && !begins_marked) marked.text += options_.mark;
      for (const char c : piece) {
        if (c == ' ')
          marked.text += options_.mark;
        else
          marked.text += c;
      }
      marked.ends.push_back(marked.text.size());
    }
    return words_ == nullptr ? marked : words_->split(std::move(marked));
  }

 private:
  MetaspaceOptions options_;
  std::unique_ptr<PreTokenizer> words_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> make_metaspace(MetaspaceOptions options) {
  std::unique_ptr<PreTokenizer> words;
  if (options.split) {
    UK_TRY(mark, Regex::compile(escape_regex(options.mark)));
    words = make_split(std::move(mark), SplitBehavior::merged_with_next, false);
  }
  return std::make_unique<Metaspace>(std::move(options), std::move(words));
}

}  // namespace underkeel::data
