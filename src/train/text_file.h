#pragma once
// Text files that are written piece by piece, for those whose length grows with a run.

#include <functional>
#include <string>
#include <string_view>

#include "io/file.h"

namespace underkeel::train {

/// Takes a piece of text; an error ends the writing.
using TextSink = std::function<Result<void>(std::string_view piece)>;

/// As io::FileSystem::write_text_durably(), with the text in the pieces that `write` hands on.
Result<void> write_in_pieces(io::FileSystem& files, const std::string& path,
                             const std::function<Result<void>(const TextSink&)>& write);

}  // namespace underkeel::train
