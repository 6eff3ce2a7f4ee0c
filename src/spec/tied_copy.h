#pragma once
// A head that is tied to the embedding: two names for one parameter.

#include <optional>
#include <string>

#include "spec/model_spec.h"

namespace underkeel::spec {

struct TiedCopy {
  std::string copy;  // "lm_head.weight": not to be in the files
  std::string kept;  // "model.embed_tokens.weight"
};
/// None unless the head is tied to the embedding.
inline std::optional<TiedCopy> tied_copy(const ModelSpec& model) {
  if (!model.tied_head) return std::nullopt;
  return TiedCopy{.copy = "lm_head.weight", .kept = "model.embed_tokens.weight"};
}

}  // namespace underkeel::spec
