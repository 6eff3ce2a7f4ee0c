#pragma once
// The rotary embedding's part of config.json, in both spellings. Private to spec.

#include "spec/families.h"
#include "spec/fields.h"
#include "spec/model_spec.h"

namespace underkeel::spec {

/// Reads rope_theta + rope_scaling (transformers 4) or rope_parameters (transformers 5) of a
/// config's top level. Problems go to `fields`; the result then means nothing.
Rope read_rope(Fields& fields, Problems& problems, const Family& family,
               std::int64_t max_position_embeddings, std::int64_t head_width);

}  // namespace underkeel::spec
