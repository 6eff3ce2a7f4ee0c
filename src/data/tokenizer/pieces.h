#pragma once
// Text cut into pieces: one string and the end of each piece in it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace underkeel::data {

struct Pieces {
  std::string text;
  std::vector<std::size_t> ends;  // ascending; the last one is text.size() unless there is none
  bool starts_text = true;        // the first piece begins the whole input

  void append(std::string_view piece) {
    if (piece.empty()) return;
    text += piece;
    ends.push_back(text.size());
  }
  std::string_view piece(std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : ends[index - 1];
    return std::string_view(text).substr(begin, ends[index] - begin);
  }
};

}  // namespace underkeel::data
