#pragma once
// How large a model is, in the counts that memory depends on: trainable and frozen elements, tensor by tensor.

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/run_facts.h"
#include "spec/model_spec.h"

namespace underkeel::doctor {

struct Tensor {
  std::int64_t elements = 0;
  bool is_trainable = true;
  bool is_quantised = false;
};

struct ModelSizes {
  std::vector<Tensor> tensors;  // in state-dict order; adapters after their matrix
  double trainable = 0;         // elements
  double frozen = 0;            // of them quantised ones
  double quantised = 0;
  double largest_tensor = 0;
  double largest_trainable = 0;
  double tied = 0;  // of a trained embedding that is the head too; it comes first
  double total() const { return trainable + frozen; }
};

/// Of full fine-tuning, of LoRA as PEFT builds it (two matrices of rank R beside each target; `all` is every
/// linear layer but the head), and of LoRA on a quantised base (every linear layer but the head is quantised).
ModelSizes sizes_of(const spec::ModelSpec& model, const RunFacts& run);

/// Of full fine-tuning.
ModelSizes sizes_of(const spec::ModelSpec& model);

}  // namespace underkeel::doctor
