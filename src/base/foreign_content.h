#pragma once
// What people have in a file in place of what its name says: a Git LFS pointer, a web page, text of another encoding.

#include <optional>
#include <string>
#include <string_view>

namespace underkeel {

struct ForeignContent {
  std::string what;  // "a Git LFS pointer, not the file itself, which has 4,976,698,672 bytes"
  std::string fix;
  bool is_web_page = false;
};

/// For any file, by its first bytes (some hundred are enough): a pointer or a web page.
std::optional<ForeignContent> stand_in_of(std::string_view start);

/// For a file that is to be text: a stand-in, or UTF-16 and UTF-32, with a byte-order mark or without.
std::optional<ForeignContent> foreign_content_of(std::string_view start);

}  // namespace underkeel
