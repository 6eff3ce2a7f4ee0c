#include "io/weight_index.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/byte_order_mark.h"
#include "base/printable.h"
#include "io/file.h"
#include "io/plain_name.h"
#include "io/strict_json.h"

namespace underkeel::io {

namespace {

class IndexVisitor final : public JsonVisitor {
 public:
  IndexVisitor(WeightIndex& index, const std::string& path) : index_(index), path_(path) {}

  bool has_weight_map() const { return has_weight_map_; }

  Result<void> begin_object(JsonPath path) override {
    if (path.size() == 1 && path[0].key == "weight_map") has_weight_map_ = true;
    if (path.size() == 2 && path[0].key == "weight_map") return not_a_name(path[1].key);
    return {};
  }

  Result<void> begin_array(JsonPath path) override {
    if (path.empty()) return bad("the index is not a JSON object");
    if (path.size() == 1 && path[0].key == "weight_map")
      return bad("`weight_map` is not a JSON object");
    if (path.size() == 2 && path[0].key == "weight_map") return not_a_name(path[1].key);
    return {};
  }

  Result<void> end(JsonPath) override { return {}; }

  Result<void> scalar(JsonPath path, const JsonScalar& value) override {
    if (path.empty()) return bad("the index is not a JSON object");
    if (path.size() == 1 && path[0].key == "weight_map")
      return bad("`weight_map` is not a JSON object");
    if (path.size() == 2 && path[0].key == "weight_map") {
      const auto* name = std::get_if<std::string_view>(&value);
      if (name == nullptr || !is_plain_file_name(*name)) return not_a_name(path[1].key);
      index_.file_of_tensor[path[1].key] = std::string(*name);
    }
    if (path.size() == 2 && path[0].key == "metadata" && path[1].key == "total_size")
      take_total_size(value);
    return {};
  }

 private:
  tl::unexpected<Error> bad(std::string what) const {
    return fail(ErrorCode::bad_file, std::move(what), path_);
  }
  tl::unexpected<Error> not_a_name(std::string_view tensor) const {
    return fail(ErrorCode::bad_file, "the index names something else than a file in the folder",
                fmt::format("{}, tensor {}", path_, printable(tensor)));
  }
  /// Some writers put a whole number as 1.6e10; what is not a size is as good as absent.
  void take_total_size(const JsonScalar& value) {
    constexpr std::int64_t most = 9'000'000'000'000'000'000;
    if (const auto* whole = std::get_if<std::uint64_t>(&value); whole != nullptr && *whole < most)
      index_.total_size_bytes = static_cast<std::int64_t>(*whole);
    if (const auto* real = std::get_if<double>(&value);
        real != nullptr && *real >= 0 && *real < 9e18 && std::floor(*real) == *real)
      index_.total_size_bytes = static_cast<std::int64_t>(*real);
  }

  WeightIndex& index_;
  const std::string& path_;
  bool has_weight_map_ = false;
};

}  // namespace

Result<WeightIndex> parse_weight_index(std::string_view text, const std::string& path) {
  WeightIndex index;
  IndexVisitor visitor(index, path);
  UK_TRY_VOID(read_strict_json(without_byte_order_mark(text), path, visitor));
  if (!visitor.has_weight_map())
    return fail(ErrorCode::bad_file, "the index has no `weight_map`", path);
  return index;
}

}  // namespace underkeel::io
