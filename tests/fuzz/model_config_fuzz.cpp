// config.json from anywhere: no input may crash, overflow or hang, and what is accepted must be
// usable: bounded sizes, one window a layer, a rewritten text that reads to the same model.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/byte_order_mark.h"
#include "spec/json_reader.h"
#include "spec/model_spec.h"

namespace {

using underkeel::DType;
namespace spec = underkeel::spec;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_accepted(const spec::ModelSpec& model) {
  require(model.layers >= 1 && model.windows.size() == static_cast<std::size_t>(model.layers));
  require(model.head_width >= 2 && model.head_width % 2 == 0);
  require(model.query_heads % model.key_heads == 0);
  const std::int64_t count = spec::parameter_count(model);
  require(count > 0 && count < std::int64_t{1} << 56);
  require(model.rope.theta > 1 && model.rope.factor >= 1);
  for (const std::int64_t id : model.end_token_ids) require(id >= 0 && id < model.vocabulary);
  if (model.layers > 4) return;  // the list of thousands of layers says nothing new and is slow
  std::int64_t listed = 0;
  for (const spec::Parameter& parameter : spec::parameters_of(model))
    listed += parameter.element_count();
  require(listed == count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The dialect of DeepSpeed's configs: whatever is strict JSON is relaxed JSON too, but for a mark, which json.load refuses.
  const auto relaxed = spec::read_json(text, "fuzz", spec::JsonDialect::relaxed);
  const auto strict = spec::read_json(text, "fuzz", spec::JsonDialect::strict);
  const std::size_t marks = text.starts_with(underkeel::byte_order_mark) ? 1 : 0;
  require(!strict || (relaxed && relaxed->departures.size() == marks));

  const auto model = spec::parse_model_config(text, "fuzz");
  if (!model) {
    require(!model.error().what.empty());
    return 0;
  }
  check_accepted(*model);
  const auto rewritten = spec::rewrite_model_config(text, DType::bf16);
  require(rewritten.has_value());
  const auto again = spec::parse_model_config(*rewritten, "fuzz");
  require(again.has_value() && again->stored_type == DType::bf16);
  require(spec::parameter_count(*again) == spec::parameter_count(*model));
  return 0;
}
