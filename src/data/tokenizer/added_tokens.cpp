#include "data/tokenizer/added_tokens.h"

#include <algorithm>

#include "data/tokenizer/regex.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

// Word characters as single_word means them: Alphabetic, marks, decimal digits, connectors and
// join controls. (Oniguruma's \w, used in patterns, is slightly different.)
constexpr std::string_view word_pattern =
    R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}])";

bool is_word_character(std::string_view character) {
  static const Result<Regex> word = Regex::compile(word_pattern);
  bool found = false;
  return word && word->for_each_match(character, [&](Match) { found = true; }) && found;
}

}  // namespace

void Trie::insert(std::string_view word, std::int32_t value) {
  if (word.empty()) return;
  begins_[static_cast<unsigned char>(word[0])] = true;
  std::size_t node = 0;
  for (const char c : word) {
    const auto [child, is_new] =
        nodes_[node].children.emplace(c, static_cast<std::int32_t>(nodes_.size()));
    node = static_cast<std::size_t>(child->second);
    if (is_new) nodes_.emplace_back();
  }
  if (nodes_[node].value < 0) nodes_[node].value = value;
}

Trie::Found Trie::longest_at(std::string_view text, std::size_t position) const {
  Found found;
  if (!begins_[static_cast<unsigned char>(text[position])]) return found;
  std::size_t node = 0;
  for (std::size_t at = position; at < text.size(); ++at) {
    const auto child = nodes_[node].children.find(text[at]);
    if (child == nodes_[node].children.end()) break;
    node = static_cast<std::size_t>(child->second);
    if (nodes_[node].value >= 0) found = {nodes_[node].value, at + 1 - position};
  }
  return found;
}

std::int32_t AddedTokens::add(AddedToken token, const Model& model) {
  if (const auto known = index_of_content_.find(token.content); known != index_of_content_.end()) {
    AddedToken& old = tokens_[known->second];
    token.id = old.id;
    old = std::move(token);
    return old.id;
  }
  if (const auto id = model.id_of(token.content)) {
    token.id = *id;
  } else {
    token.id = std::max(model.token_count(), largest_id_ + 1);
  }
  const std::int32_t id = token.id;
  largest_id_ = std::max(largest_id_, id);
  index_of_content_.emplace(token.content, tokens_.size());
  index_of_id_[id] = tokens_.size();
  tokens_.push_back(std::move(token));
  return id;
}

Result<void> AddedTokens::finish(const Normalizer* normalizer) {
  raw_ = Trie();
  normalized_ = Trie();
  // Special tokens first: of two that normalize to the same text, they win.
  for (const bool special : {true, false}) {
    for (AddedToken& token : tokens_) {
      if (token.special != special) continue;
      token.found_as = token.content;
      if (token.normalized && normalizer != nullptr) {
        UK_TRY(content, normalizer->normalize(token.content));
        token.found_as = std::move(content);
      }
      (token.normalized ? normalized_ : raw_).insert(token.found_as, token.id);
    }
  }
  return {};
}

std::vector<Segment> AddedTokens::cut(const Trie& trie, std::string_view text,
                                      bool ignore_special) const {
  std::vector<Segment> segments;
  std::size_t done = 0;  // what is before belongs to a segment
  std::size_t at = trie.is_empty() ? text.size() : 0;
  while ((at = trie.next_begin(text, at)) < text.size()) {
    const Trie::Found found = trie.longest_at(text, at);
    if (found.value < 0) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + found.size_bytes;
    at = end;
    const AddedToken& token = *token_of(found.value);
    if (ignore_special && token.special) continue;
    if (token.single_word) {
      if (begin > 0 && is_word_character(last_code_point(text.substr(0, begin)))) continue;
      if (end < text.size() && is_word_character(text.substr(end, code_point_bytes(text[end]))))
        continue;
    }
    if (token.lstrip) begin = std::max(begin - white_space_at_end(text.substr(0, begin)), done);
    if (token.rstrip) end += white_space_at_start(text.substr(end));
    if (done < begin) segments.push_back({std::nullopt, text.substr(done, begin - done)});
    segments.push_back({token.id, {}});
    // A token of white space may lie inside what an rstrip before it has taken; it counts, and the
    // text goes on after the later end of the two in file order, as the library does.
    done = end;
  }
  if (done < text.size()) segments.push_back({std::nullopt, text.substr(done)});
  return segments;
}

std::vector<Segment> AddedTokens::cut_raw(std::string_view text, bool ignore_special) const {
  return cut(raw_, text, ignore_special);
}
std::vector<Segment> AddedTokens::cut_normalized(std::string_view text, bool ignore_special) const {
  return cut(normalized_, text, ignore_special);
}

std::optional<std::int32_t> AddedTokens::id_of(std::string_view content) const {
  const auto found = index_of_content_.find(std::string(content));
  if (found == index_of_content_.end()) return std::nullopt;
  return tokens_[found->second].id;
}

bool AddedTokens::is_special(std::string_view content) const {
  const auto found = index_of_content_.find(std::string(content));
  return found != index_of_content_.end() && tokens_[found->second].special;
}

const AddedToken* AddedTokens::token_of(std::int32_t id) const {
  const auto found = index_of_id_.find(id);
  return found == index_of_id_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace underkeel::data
