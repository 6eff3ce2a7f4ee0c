#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

namespace {

/// The keys that one query sees: rows [begin, end) of the flat micro-batch.
struct KeyRange {
  std::int64_t begin;
  std::int64_t end;
};

template <class Args>
KeyRange keys_of(const Args& args, std::int64_t query) {
  const auto* starts = args.sequence_starts.template as<std::int32_t>();
  // The last start that is not after the query begins the query's sequence.
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i <= args.q.rows && starts[i] <= query; ++i) begin = starts[i];
  if (args.window > 0) begin = std::max(begin, query - args.window + 1);
  return {begin, query + 1};
}

template <class Args>
double dot_of(const Args& args, const TensorView& left, std::int64_t left_row,
              std::int64_t left_head, const TensorView& right, std::int64_t right_row,
              std::int64_t right_head) {
  double sum = 0;
  for (std::int64_t e = 0; e < args.head_width; ++e)
    sum += load(left, left_row, left_head * args.head_width + e) *
           load(right, right_row, right_head * args.head_width + e);
  return sum;
}

}  // namespace

void attention_forward(const AttentionForwardArgs& args, device::Queue& /*queue*/) {
  const AttentionShape shape = check_shapes(args);
  for (std::int64_t query = 0; query < shape.rows; ++query) {
    const KeyRange keys = keys_of(args, query);
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const std::int64_t key_head = head / (shape.query_heads / shape.key_heads);
      const auto score = [&](std::int64_t key) {
        return dot_of(args, args.q, query, head, args.k, key, key_head) *
               static_cast<double>(args.scale);
      };
      double largest = -std::numeric_limits<double>::infinity();
      for (std::int64_t key = keys.begin; key < keys.end; ++key)
        largest = std::max(largest, score(key));
      double sum = 0;
      for (std::int64_t key = keys.begin; key < keys.end; ++key)
        sum += std::exp(score(key) - largest);
      const double lse = largest + std::log(sum);
      store(args.lse, query, head, lse);
      for (std::int64_t e = 0; e < shape.head_width; ++e) {
        double mixed = 0;
        for (std::int64_t key = keys.begin; key < keys.end; ++key)
          mixed += std::exp(score(key) - lse) * load(args.v, key, key_head * shape.head_width + e);
        store(args.out, query, head * shape.head_width + e, mixed);
      }
    }
  }
}

namespace {

/// What the loss gains per unit of one score, and the score's probability.
struct ScoreGradient {
  double probability;
  double gradient;
};

ScoreGradient score_gradient(const AttentionBackwardArgs& args, std::int64_t query,
                             std::int64_t head, std::int64_t key, std::int64_t key_head) {
  const double score =
      dot_of(args, args.q, query, head, args.k, key, key_head) * static_cast<double>(args.scale);
  const double probability = std::exp(score - load(args.lse, query, head));
  const double dprobability = dot_of(args, args.dout, query, head, args.v, key, key_head);
  const double delta = dot_of(args, args.dout, query, head, args.out, query, head);
  return {probability, probability * (dprobability - delta)};
}

}  // namespace

void attention_backward(const AttentionBackwardArgs& args, device::Queue& /*queue*/) {
  const AttentionShape shape = check_shapes(args);
  const std::int64_t group = shape.query_heads / shape.key_heads;
  const std::int64_t width = shape.head_width;
  const auto scale = static_cast<double>(args.scale);
  for (std::int64_t query = 0; query < shape.rows; ++query) {
    const KeyRange keys = keys_of(args, query);
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      std::vector<double> dq(width, 0.0);
      for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        const double gradient = score_gradient(args, query, head, key, head / group).gradient;
        for (std::int64_t e = 0; e < width; ++e)
          dq[e] += gradient * scale * load(args.k, key, head / group * width + e);
      }
      for (std::int64_t e = 0; e < width; ++e) store(args.dq, query, head * width + e, dq[e]);
    }
  }
  for (std::int64_t key = 0; key < shape.rows; ++key) {
    for (std::int64_t key_head = 0; key_head < shape.key_heads; ++key_head) {
      std::vector<double> dk(width, 0.0);
      std::vector<double> dv(width, 0.0);
      for (std::int64_t query = key; query < shape.rows; ++query) {
        if (keys_of(args, query).begin > key) break;  // later queries see only later keys
        for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
          const ScoreGradient score = score_gradient(args, query, head, key, key_head);
          for (std::int64_t e = 0; e < width; ++e) {
            dk[e] += score.gradient * scale * load(args.q, query, head * width + e);
            dv[e] += score.probability * load(args.dout, query, head * width + e);
          }
        }
      }
      for (std::int64_t e = 0; e < width; ++e) {
        store(args.dk, key, key_head * width + e, dk[e]);
        store(args.dv, key, key_head * width + e, dv[e]);
      }
    }
  }
}

}  // namespace underkeel::kernels::reference
