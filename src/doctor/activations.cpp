#include "doctor/activations.h"

#include <algorithm>

namespace underkeel::doctor {
namespace {

struct Widths {
  double width, query, key, feed_forward, layers, vocabulary, heads;
};

Widths widths_of(const spec::ModelSpec& model) {
  return {.width = static_cast<double>(model.width),
          .query = static_cast<double>(model.query_heads * model.head_width),
          .key = static_cast<double>(model.key_heads * model.head_width),
          .feed_forward = static_cast<double>(model.feed_forward),
          .layers = static_cast<double>(model.layers),
          .vocabulary = static_cast<double>(model.vocabulary),
          .heads = static_cast<double>(model.query_heads)};
}

double tokens_of(const ActivationQuestion& question) {
  return question.sequences * question.tokens;
}

/// Bytes of one layer and token that eager code keeps. Per RMSNorm: the input in f32, the normalised values and the
/// output; rotated q and k, v (repeated for each query head by older releases), the attention's output; gate, its
/// SiLU, up, their product.
double eager_bytes_per_token(const ActivationQuestion& question) {
  const Widths w = widths_of(question.model);
  const double norms = 2 * w.width * (4 + 2 * question.element_bytes);
  const double attention = question.element_bytes * (4 * w.query) + 4 * w.heads;
  const double mlp = question.element_bytes * 4 * w.feed_forward;
  // Scores of all keys, once in the type of the activations and once as f32 softmax.
  const double scores =
      question.has_eager_attention ? w.heads * question.tokens * (question.element_bytes + 4) : 0;
  return norms + attention + mlp + scores;
}

Range layer_of(const ActivationQuestion& question) {
  return {
      .low = tokens_of(question) * question.element_bytes * least_values_per_token(question.model),
      .high = tokens_of(question) * eager_bytes_per_token(question)};
}

}  // namespace

double least_values_per_token(const spec::ModelSpec& model) {
  const Widths w = widths_of(model);
  return w.width + 2 * w.query + 2 * w.key + 2 * w.feed_forward;
}

Range kept_activations(const ActivationQuestion& question) {
  const Widths w = widths_of(question.model);
  if (question.recomputes) {
    const double inputs = w.layers * tokens_of(question) * w.width * question.element_bytes;
    return {inputs, inputs};
  }
  const Range layer = layer_of(question);
  return {w.layers * layer.low, w.layers * layer.high};
}

Range layer_work(const ActivationQuestion& question) {
  const Widths w = widths_of(question.model);
  // Gradients of gate, up and their product live at once; before them those of the attention are smaller.
  const double gradients = tokens_of(question) * question.element_bytes * 3 * w.feed_forward;
  if (!question.recomputes) return {0, gradients};
  const Range layer = layer_of(question);
  return {layer.low, layer.high + gradients};
}

Range logits_and_loss(const ActivationQuestion& question) {
  const double values = tokens_of(question) * widths_of(question.model).vocabulary;
  // Held whole in f32, and in the model's type by the output object; log-softmax and its gradient come on top.
  return {values * (4 + question.element_bytes), values * (8 + 2 * question.element_bytes + 2)};
}

Range activation_peak(const ActivationQuestion& question) {
  const Range kept = kept_activations(question);
  const Range work = layer_work(question);
  const Range logits = logits_and_loss(question);
  return {kept.low + std::max(work.low, logits.low), kept.high + std::max(work.high, logits.high)};
}

Range evaluation_peak(const ActivationQuestion& question) {
  const Widths w = widths_of(question.model);
  const double values = tokens_of(question) * w.vocabulary;
  const double layer = tokens_of(question) * question.element_bytes * 3 * w.feed_forward;
  return {values * (4 + question.element_bytes),
          std::max(layer, values * (8 + question.element_bytes + 2))};
}

}  // namespace underkeel::doctor
