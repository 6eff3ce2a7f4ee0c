#include "io/part_list.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "io/json_fields.h"
#include "io/strict_json.h"

namespace underkeel::io {

namespace {

class RankPartsVisitor final : public FieldVisitor {
 public:
  RankPartsVisitor(RankParts& parts, const std::string& source)
      : FieldVisitor(source), parts_(parts) {}

  Result<void> finish() {
    if (!rank_ || !has_parts_)
      return fail(ErrorCode::bad_file, "the list lacks one of rank, parts", source_);
    parts_.rank = *rank_;
    return {};
  }

  Result<void> begin_object(JsonPath path) override {
    if (path.size() == 2) {
      part_ = {};
      tensor_.reset();
    }
    return {};
  }
  Result<void> begin_array(JsonPath path) override {
    if (path.size() == 1 && path[0].key == "parts") has_parts_ = true;
    return {};
  }
  Result<void> scalar(JsonPath path, const JsonScalar& value) override {
    if (path.size() == 1 && path[0].key == "rank") return take(path, value, rank_);
    if (path.size() != 3 || path[0].key != "parts") return {};
    if (path[2].key == "tensor") return take(path, value, tensor_);
    return take_part_field(path, value, part_);
  }
  Result<void> end(JsonPath path) override {
    if (path.size() != 2 || path[0].key != "parts") return {};
    UK_TRY(part, finished(path, part_));
    if (!tensor_) return bad(path, "lacks its tensor");
    parts_.entries.push_back({std::move(*tensor_), part});
    return {};
  }

 private:
  RankParts& parts_;
  std::optional<std::int64_t> rank_;
  bool has_parts_ = false;
  std::optional<std::string> tensor_;
  PartDraft part_;
};

}  // namespace

Result<std::string> to_json(const RankParts& parts) {
  std::string json = fmt::format(R"({{"rank": {}, "parts": [)", parts.rank);
  std::string_view separator = "";
  for (const RankParts::Entry& entry : parts.entries) {
    UK_TRY(tensor, json_quoted(entry.tensor));
    json += fmt::format(R"({}{{"tensor": {}, "begin": {}, "end": {}, "xxh3_64": "{}"}})",
                        std::exchange(separator, ", "), tensor, entry.part.begin, entry.part.end,
                        checksum_text(entry.part.xxh3_64));
  }
  return json + "]}";
}

Result<RankParts> parse_rank_parts(std::string_view text, const std::string& source) {
  RankParts parts;
  RankPartsVisitor visitor(parts, source);
  UK_TRY_VOID(read_strict_json(text, source, visitor));
  UK_TRY_VOID(visitor.finish());
  return parts;
}

Result<void> merge_parts(Manifest& manifest, std::span<const RankParts> ranks) {
  std::map<std::string_view, CheckpointTensor*> tensors;
  for (CheckpointTensor& tensor : manifest.tensors) {
    tensor.parts.clear();
    tensors[tensor.name] = &tensor;
  }
  for (const RankParts& rank : ranks) {
    for (const RankParts::Entry& entry : rank.entries) {
      const auto found = tensors.find(entry.tensor);
      if (found == tensors.end())
        return fail(ErrorCode::io,
                    fmt::format("rank {} wrote a tensor that is not part of the save", rank.rank),
                    "tensor " + printable(entry.tensor));
      // A rank whose shard of a small tensor is empty has nothing to add.
      if (entry.part.begin != entry.part.end) found->second->parts.push_back(entry.part);
    }
  }
  for (CheckpointTensor& tensor : manifest.tensors) {
    std::sort(tensor.parts.begin(), tensor.parts.end(),
              [](const FilePart& a, const FilePart& b) { return a.begin < b.begin; });
    std::int64_t position = tensor.begin;
    const auto uncovered = [&](std::int64_t end) {
      return fail(ErrorCode::io,
                  position < end
                      ? fmt::format("bytes {} to {} were written by no rank", position, end)
                      : fmt::format("bytes {} to {} were written twice", end, position),
                  fmt::format("{}, tensor {}", tensor.file, printable(tensor.name)));
    };
    for (const FilePart& part : tensor.parts) {
      if (part.begin != position) return uncovered(part.begin);
      position = part.end;
    }
    if (position != tensor.end) return uncovered(tensor.end);
  }
  return {};
}

}  // namespace underkeel::io
