#include <algorithm>
#include <cmath>
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
      std::vector<double> scores;
      for (std::int64_t key = keys.begin; key < keys.end; ++key)
        scores.push_back(dot_of(args, args.q, query, head, args.k, key, key_head) *
                         static_cast<double>(args.scale));
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double score : scores) sum += std::exp(score - largest);
      const double lse = largest + std::log(sum);
      store(args.lse, query, head, lse);
      std::vector<double> mixed(shape.head_width, 0.0);
      for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        const double probability = std::exp(scores[key - keys.begin] - lse);
        for (std::int64_t e = 0; e < shape.head_width; ++e)
          mixed[e] += probability * load(args.v, key, key_head * shape.head_width + e);
      }
      for (std::int64_t e = 0; e < shape.head_width; ++e)
        store(args.out, query, head * shape.head_width + e, mixed[e]);
    }
  }
}

void attention_cached(const AttentionCachedArgs& args, device::Queue& /*queue*/) {
  const AttentionShape shape = check_shapes(args);
  const std::int64_t held = shape.rows > 0 ? args.positions.as<std::int32_t>()[0] : 0;
  for (std::int64_t row = 0; row < shape.rows; ++row)
    for (std::int64_t column = 0; column < args.k.columns; ++column) {
      store(args.keys, held + row, column, load(args.k, row, column));
      store(args.values, held + row, column, load(args.v, row, column));
    }
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::int64_t end = held + row + 1;
    const std::int64_t begin = args.window > 0 ? std::max<std::int64_t>(0, end - args.window) : 0;
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const std::int64_t key_head = head / (shape.query_heads / shape.key_heads);
      std::vector<double> scores;
      for (std::int64_t key = begin; key < end; ++key)
        scores.push_back(dot_of(args, args.q, row, head, args.keys, key, key_head) *
                         static_cast<double>(args.scale));
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double score : scores) sum += std::exp(score - largest);
      for (std::int64_t e = 0; e < shape.head_width; ++e) {
        double mixed = 0;
        for (std::int64_t key = begin; key < end; ++key)
          mixed += std::exp(scores[key - begin] - largest) / sum *
                   load(args.values, key, key_head * shape.head_width + e);
        store(args.out, row, head * shape.head_width + e, mixed);
      }
    }
  }
}

void attention_backward(const AttentionBackwardArgs& args, device::Queue& queue) {
  const AttentionShape shape = check_shapes(args);
  const std::int64_t group = shape.query_heads / shape.key_heads;
  const std::int64_t width = shape.head_width;
  const auto scale = static_cast<double>(args.scale);
  const auto store_all = [](const TensorView& view, const std::vector<double>& values) {
    for (std::int64_t row = 0; row < view.rows; ++row)
      for (std::int64_t column = 0; column < view.columns; ++column)
        store(view, row, column, values[row * view.columns + column]);
  };
  std::vector<double> dq(shape.rows * args.q.columns, 0.0);
  std::vector<double> dk(shape.rows * args.k.columns, 0.0);
  std::vector<double> dv(shape.rows * args.v.columns, 0.0);
  for (std::int64_t query = 0; query < shape.rows; ++query) {
    const KeyRange keys = keys_of(args, query);
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const std::int64_t key_head = head / group;
      const double delta = dot_of(args, args.dout, query, head, args.out, query, head);
      for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        const double score = dot_of(args, args.q, query, head, args.k, key, key_head) * scale;
        const double probability = std::exp(score - load(args.lse, query, head));
        const double dprobability = dot_of(args, args.dout, query, head, args.v, key, key_head);
        const double dscore = probability * (dprobability - delta) * scale;
        for (std::int64_t e = 0; e < width; ++e) {
          const std::int64_t q_column = head * width + e;
          const std::int64_t k_column = key_head * width + e;
          dq[query * args.q.columns + q_column] += dscore * load(args.k, key, k_column);
          dk[key * args.k.columns + k_column] += dscore * load(args.q, query, q_column);
          dv[key * args.v.columns + k_column] += probability * load(args.dout, query, q_column);
        }
      }
    }
  }
  store_all(args.dq, dq);
  store_all(args.dk, dk);
  store_all(args.dv, dv);
  if (args.cosine.data == nullptr) return;
  for (const TensorView& x : {args.dq, args.dk})
    rope_apply(
        {.x = x, .cosine = args.cosine, .sine = args.sine, .head_width = width, .inverse = true},
        queue);
}

}  // namespace underkeel::kernels::reference
