#include "data/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <pcre2.h>

#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

// Both bounds are far above what tokenizer patterns need and end a hostile pattern within seconds.
constexpr std::uint32_t backtrack_limit = 10'000'000;
constexpr std::uint32_t heap_limit_kib = 256 * 1024;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;
using MatchContext = std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  std::string pattern;

  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

Result<Regex> Regex::compile(std::string_view pattern) {
  UK_TRY(translated, translate_regex(pattern));
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_shared<Code>();
  code->pattern = std::string(pattern);
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &error, &offset, context.get());
  if (code->code == nullptr)
    return fail(ErrorCode::bad_file, fmt::format("regular expression: {}", message_of(error)),
                fmt::format("byte {} of `{}`", offset, translated));
  // Without a just-in-time compiler the interpreter gives the same matches.
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
  Regex regex;
  regex.code_ = std::move(code);
  return regex;
}

Result<void> Regex::for_each_match(std::string_view text,
                                   const std::function<void(Match)>& visit) const {
  const MatchData data(pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  const MatchContext context(pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), backtrack_limit);
  pcre2_set_heap_limit(context.get(), heap_limit_kib);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t from = 0;
  std::size_t last_end = std::string_view::npos;
  while (from <= text.size()) {
    int count = pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data.get(),
                            context.get());
    if (count == PCRE2_ERROR_JIT_STACKLIMIT)
      count = pcre2_match(code_->code, subject, text.size(), from,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(), context.get());
    if (count == PCRE2_ERROR_NOMATCH) return {};
    if (count < 0)
      return fail(ErrorCode::bad_file, fmt::format("regular expression: {}", message_of(count)),
                  fmt::format("pattern `{}` on {} bytes of text", code_->pattern, text.size()));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    const Match match{ends[0], ends[1]};
    if (match.begin == match.end && match.begin == last_end) {
      from = match.end;
      if (from == text.size()) return {};
      from += code_point_bytes(text[from]);
      continue;
    }
    from = last_end = match.end;
    visit(match);
  }
  return {};
}

Result<std::string> Regex::replace(std::string_view text, std::string_view content) const {
  std::string replaced;
  std::size_t done = 0;
  UK_TRY_VOID(for_each_match(text, [&](Match match) {
    replaced += text.substr(done, match.begin - done);
    replaced += content;
    done = match.end;
  }));
  replaced += text.substr(done);
  return replaced;
}

}  // namespace underkeel::data
