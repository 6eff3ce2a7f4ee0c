#include "base/foreign_content.h"

#include <array>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

#include "base/byte_order_mark.h"
#include "base/units.h"

namespace underkeel {
namespace {

// Fewer may begin a file of some other kind.
constexpr std::size_t least_zeros = 64;
constexpr std::string_view pointer_begin = "version https://git-lfs.github.com/spec/";

bool is_plain(char c) {
  return (c >= ' ' && c <= '~') || c == '\t' || c == '\r' || c == '\n';
}

bool begins_with_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(text[i])) != word[i]) return false;
  return true;
}

ForeignContent pointer_of(std::string_view start) {
  constexpr std::string_view mark = "\nsize ";
  std::string whole;
  if (const std::size_t at = start.find(mark); at != std::string_view::npos) {
    std::int64_t size_bytes = 0;
    int digits = 0;
    for (const char c : start.substr(at + mark.size())) {
      if (c < '0' || c > '9' || ++digits > 18) break;
      size_bytes = 10 * size_bytes + (c - '0');
    }
    if (digits > 0 && digits <= 18)
      whole = fmt::format(", which has {} bytes", format_count(size_bytes));
  }
  return {.what = "a Git LFS pointer, not the file itself" + whole,
          .fix = "`git lfs pull` in its folder fetches the file; or download it by itself"};
}

/// The encoding of text that begins with a plain character, or with a byte-order mark; empty for others.
std::string_view wide_encoding_of(std::string_view start, bool& has_mark) {
  struct Mark {
    std::string_view bytes, encoding;
  };
  using namespace std::string_view_literals;
  constexpr std::array marks = {Mark{"\xFF\xFE\0\0"sv, "UTF-32LE"},
                                Mark{"\0\0\xFE\xFF"sv, "UTF-32BE"}, Mark{"\xFF\xFE"sv, "UTF-16LE"},
                                Mark{"\xFE\xFF"sv, "UTF-16BE"}};
  has_mark = true;
  for (const Mark& mark : marks)
    if (start.starts_with(mark.bytes)) return mark.encoding;
  has_mark = false;
  if (start.size() < 4) return {};
  const bool first_is_zero = start[0] == '\0', second_is_zero = start[1] == '\0';
  const bool pair_is_zero = start[2] == '\0' && start[3] == '\0';
  if (is_plain(start[0]) && second_is_zero) return pair_is_zero ? "UTF-32LE" : "UTF-16LE";
  if (first_is_zero && second_is_zero && start[2] == '\0' && is_plain(start[3])) return "UTF-32BE";
  if (first_is_zero && is_plain(start[1])) return "UTF-16BE";
  return {};
}

}  // namespace

std::optional<ForeignContent> stand_in_of(std::string_view start) {
  if (start.starts_with(pointer_begin)) return pointer_of(start);
  if (start.size() >= least_zeros && start.find_first_not_of('\0') == std::string_view::npos)
    return ForeignContent{
        .what = fmt::format("zero bytes alone, as far as the first {} tell", start.size()),
        .fix =
            "copy, download or save it again: a full disk or a copy that broke off leaves "
            "such files"};
  start = without_byte_order_mark(start);
  while (!start.empty() && std::isspace(static_cast<unsigned char>(start[0])))
    start.remove_prefix(1);
  if (begins_with_word(start, "<!doctype html") || begins_with_word(start, "<html"))
    return ForeignContent{.what = "a web page (HTML)",
                          .fix =
                              "download the file itself; on huggingface.co its address has "
                              "/resolve/ in place of /blob/",
                          .is_web_page = true};
  return std::nullopt;
}

std::optional<ForeignContent> foreign_content_of(std::string_view start) {
  if (auto stand_in = stand_in_of(start)) return stand_in;
  bool has_mark = false;
  const std::string_view encoding = wide_encoding_of(start, has_mark);
  if (encoding.empty()) return std::nullopt;
  const std::string_view family = encoding.substr(0, 6);  // iconv finds the order by the mark
  return ForeignContent{
      .what = fmt::format("{} text{}", family, has_mark ? "" : " without a byte-order mark"),
      .fix = fmt::format("iconv -f {} -t UTF-8 makes it UTF-8", has_mark ? family : encoding)};
}

}  // namespace underkeel
