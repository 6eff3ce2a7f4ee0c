#pragma once
// Which rank wrote which bytes of a save: a text from every rank, joined into the manifest on rank 0.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/checksum.h"
#include "io/manifest.h"

namespace underkeel::io {

/// The parts of tensors that one rank wrote; ranks send it to rank 0 as text.
struct RankParts {
  struct Entry {
    std::string tensor;
    FilePart part;
  };
  std::int64_t rank = 0;
  std::vector<Entry> entries;
};

Result<std::string> to_json(const RankParts& parts);
Result<RankParts> parse_rank_parts(std::string_view text, const std::string& source);

/// Puts the parts of all ranks into the tensors of `manifest`, and checks that they cover each
/// tensor exactly. Errors: io, naming the tensor, the bytes and the ranks.
Result<void> merge_parts(Manifest& manifest, std::span<const RankParts> ranks);

}  // namespace underkeel::io
