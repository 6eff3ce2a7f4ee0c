#include "doctor/activations.h"

#include <algorithm>

namespace underkeel::doctor {
namespace {

// Logits in f32, their log-softmax and its gradient: where the loss's backward begins.
constexpr double loss_bytes = 12;
// Of several sequences older releases (4.46) copied shifted logits, in 16 bit once more and in f32 without gradients.
constexpr double shifted_loss_bytes = 2, shifted_logits_bytes = 4;
// Without gradients: logits in f32 and log-softmax; in 16 bit beside them where that is their type.
constexpr double evaluated_logits_bytes = 8;
// Per score of eager attention where a layer's backward is at it, and in a forward pass alone.
constexpr double score_work_bytes = 16;
constexpr double score_bytes_least = 8, score_bytes_most = 10;
// The gradient of a norm: two tensors in f32 beside what it read.
constexpr double norm_work_bytes = 16;

/// Bytes for each token.
class PerToken {
 public:
  explicit PerToken(const ActivationQuestion& question)
      : q_(question),
        e_(question.element_bytes),
        width_(static_cast<double>(question.model.width)),
        head_width_(static_cast<double>(question.model.head_width)),
        query_(static_cast<double>(question.model.query_heads * question.model.head_width)),
        key_(static_cast<double>(question.model.key_heads * question.model.head_width)),
        feed_forward_(static_cast<double>(question.model.feed_forward)),
        heads_(static_cast<double>(question.model.query_heads)),
        attention_(std::max(width_, query_)),
        scores_(heads_ * question.tokens) {}

  Range logits() const {
    const double vocabulary = static_cast<double>(q_.model.vocabulary);
    const double most = loss_bytes + (q_.sequences > 1 && e_ < 4 ? shifted_loss_bytes : 0);
    return {q_.has_fused_kernels ? 0 : loss_bytes * vocabulary, most * vocabulary};
  }

  Range evaluated_logits() const {
    const double vocabulary = static_cast<double>(q_.model.vocabulary);
    const double least = evaluated_logits_bytes + (e_ < 4 ? e_ : 0);
    const double most = least + (q_.sequences > 1 ? shifted_logits_bytes : 0);
    return {q_.has_fused_kernels ? 0 : least * vocabulary + e_ * width_,
            most * vocabulary + 2 * e_ * width_};
  }

  /// Probabilities in the type of the activations, and their softmax in f32.
  double scores_kept() const { return (4 + e_) * scores_; }

  double layer_input() const { return e_ * width_; }

  /// The last norm reads the layers' output in f32; tables of positions, the mask and the tokens come beside.
  Range last_norm() const {
    double beside = 2 * e_ * head_width_ + 16;
    if (has_mask()) beside += e_ * q_.tokens;
    // The norm's output is what a head that is trained reads.
    const double least = norm(width_) + (q_.is_lora ? 0 : e_ * width_);
    return {q_.has_fused_kernels ? 2 * e_ * width_ : least, norm(width_) + e_ * width_ + beside};
  }

  /// All that one layer's backward pass reads.
  Range layer() const {
    const double repeated = 2 * e_ * (query_ - key_);
    double norms = 2 * (norm(width_) + 4);
    if (q_.model.qk_norm) norms += norm(query_) + norm(key_) + 4 * (query_ + key_) / head_width_;
    const double attention = e_ * (2 * query_ + 2 * key_) + 4 * heads_;
    const double mlp = 3 * e_ * feed_forward_;
    double low = norms + attention + mlp;
    double high = low + repeated;
    // Outputs of the norms and the product of SwiGLU are read by gradients of weights.
    const double for_weights = e_ * (2 * width_ + feed_forward_);
    if (!q_.is_lora || q_.adapts_all) low += for_weights;
    high += for_weights;
    if (q_.is_lora) high += 1024;  // of the adapters themselves, of a rank up to 64
    // Each adapter drops of its input what it likes, and remembers it.
    if (q_.has_adapter_dropout) high += (e_ + 1) * (5 * width_ + query_ + feed_forward_);
    // q is copied for the kernel that takes a mask.
    if (has_mask()) high += e_ * (q_.tokens + query_);
    if (q_.has_eager_attention) {
      low += repeated + (4 + (e_ < 4 ? e_ : 0)) * scores_;
      high += scores_kept();
    } else if (may_fall_back_to_scores(q_)) {
      high += scores_kept();
    }
    if (q_.has_fused_kernels) low = e_ * least_values_per_token(q_.model);
    return {low, high};
  }

  /// Gradients of the values of a feed-forward, the most but for its weights.
  Range feed_forward_gradients() const {
    return {q_.has_fused_kernels ? 0 : 1.25 * e_ * feed_forward_, 3 * e_ * feed_forward_};
  }

  /// All that an attention with whole scores holds in its backward pass, the layer's feed-forward behind it.
  Range eager_backward() const {
    if (!q_.has_eager_attention && !may_fall_back_to_scores(q_)) return {};
    const double scores = score_work_bytes * scores_;
    return {q_.has_eager_attention ? scores + 8 * e_ * width_ : 0, scores + 12 * e_ * attention_};
  }

  double norm_gradient() const { return norm_work_bytes * width_; }

  /// One layer in a forward pass that keeps nothing.
  Range evaluated_layer() const {
    const double beside = 4 * e_ * width_;
    Range work = {(q_.has_fused_kernels ? 1 : 3) * e_ * feed_forward_ + beside,
                  (q_.is_lora ? 4 : 3) * e_ * feed_forward_ + beside + 1024};
    if (has_mask()) work.high += e_ * (q_.tokens + query_);
    if (q_.has_eager_attention) work.low = std::max(work.low, score_bytes_least * scores_ + beside);
    if (q_.has_eager_attention || may_fall_back_to_scores(q_))
      work.high = std::max(work.high, score_bytes_most * scores_ + 8 * e_ * attention_);
    return work;
  }

 private:
  /// Several sequences may be padded.
  bool has_mask() const { return q_.sequences > 1 || q_.has_eager_attention; }

  /// An input in f32 and, for a weight that is trained, normalised.
  double norm(double values) const { return values * (4 + (q_.is_lora ? 0 : e_)); }

  const ActivationQuestion& q_;
  double e_, width_, head_width_, query_, key_, feed_forward_, heads_, attention_, scores_;
};

Range plus(const Range& a, const Range& b) {
  return {a.low + b.low, a.high + b.high};
}

Range largest(const Range& a, const Range& b) {
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}

/// Of all tokens.
Range whole(const ActivationQuestion& question, const Range& per_token) {
  const double tokens = question.sequences * question.tokens;
  return {tokens * per_token.low, tokens * per_token.high};
}

Range times_layers(const ActivationQuestion& question, const Range& one) {
  const auto layers = static_cast<double>(question.model.layers);
  return {layers * one.low, layers * one.high};
}

Range inputs_of_layers(const ActivationQuestion& question) {
  const double one = PerToken(question).layer_input();
  return times_layers(question, {one, one});
}

Range kept_per_token(const ActivationQuestion& question) {
  const PerToken token(question);
  if (question.recomputes) return plus(inputs_of_layers(question), token.last_norm());
  Range layers = times_layers(question, token.layer());
  // Before the first adapter nothing waits for a gradient.
  if (question.is_lora) layers.low -= 4 * static_cast<double>(question.model.width);
  return plus(layers, token.last_norm());
}

Range work_per_token(const ActivationQuestion& question) {
  const PerToken token(question);
  const Range layer = token.layer();
  if (question.recomputes)
    return largest(plus(layer, token.feed_forward_gradients()), token.eager_backward());
  // The last layer's own values are counted with what is kept.
  const Range eager = token.eager_backward();
  const Range scores = {std::max(0.0, eager.low - layer.high - token.last_norm().high),
                        std::max(0.0, eager.high - layer.low)};
  return largest({0, std::max(token.norm_gradient(), token.feed_forward_gradients().high)}, scores);
}

}  // namespace

bool may_fall_back_to_scores(const ActivationQuestion& question) {
  return question.element_bytes == 4 && question.model.query_heads != question.model.key_heads;
}

double score_bytes_of_layer(const ActivationQuestion& question) {
  return question.sequences * question.tokens * PerToken(question).scores_kept();
}

double least_values_per_token(const spec::ModelSpec& model) {
  const auto query = static_cast<double>(model.query_heads * model.head_width);
  const auto key = static_cast<double>(model.key_heads * model.head_width);
  return static_cast<double>(model.width) + 2 * query + 2 * key +
         2 * static_cast<double>(model.feed_forward);
}

Range kept_activations(const ActivationQuestion& question) {
  return whole(question, kept_per_token(question));
}

Range layer_work(const ActivationQuestion& question) {
  return whole(question, work_per_token(question));
}

Range logits_and_loss(const ActivationQuestion& question) {
  return whole(question, PerToken(question).logits());
}

BackwardActivations backward_activations(const ActivationQuestion& question) {
  const Range kept = kept_per_token(question);
  // A layer that is computed again has the last norm behind it.
  const Range layers = question.recomputes ? inputs_of_layers(question) : kept;
  return {.loss = whole(question, plus(kept, PerToken(question).logits())),
          .layers = whole(question, layers),
          .work = layer_work(question)};
}

Range activation_peak(const ActivationQuestion& question) {
  const BackwardActivations parts = backward_activations(question);
  return largest(parts.loss, plus(parts.layers, parts.work));
}

Range evaluation_peak(const ActivationQuestion& question) {
  const PerToken token(question);
  return whole(question, largest(token.evaluated_logits(), token.evaluated_layer()));
}

}  // namespace underkeel::doctor
