#pragma once
// The three bytes that some editors put before UTF-8 text. People's files may begin with it; what programs write does not.

#include <string_view>

namespace underkeel {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

inline std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  return text;
}

}  // namespace underkeel
