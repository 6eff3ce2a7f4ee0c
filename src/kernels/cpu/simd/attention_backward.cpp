// Gradients of attention. One task is one sequence and one key head: it walks tiles of queries of
// all query heads that share the key head, in order, and adds to f32 gradients of keys and values
// in scratch. Scores are computed once, and nothing is added by two threads.

#include "kernels/cpu/simd/attention_tile.h"
#include "kernels/cpu/simd/exp.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/workspace.h"
#include "kernels/facts/facts.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

namespace {

constexpr std::int64_t pieces = largest_head_width / piece_width;

struct BackwardBuffers {
  float queries[largest_head_width * query_tile];        // (E, query_tile), times the scale
  float douts[largest_head_width * query_tile];          // (E, query_tile)
  float query_rows[pieces * query_tile * piece_stride];  // (query_tile, E) in pieces, scaled
  float dout_rows[pieces * query_tile * piece_stride];
  float keys[pieces * key_block * piece_stride];  // (key_block, E) in pieces
  float values[pieces * key_block * piece_stride];
  float probabilities[key_block * query_tile];  // (key_block, query_tile)
  float dscores[key_block * query_tile];
  float dqueries[query_tile * largest_head_width];  // (query_tile, E)
  float lse[query_tile];
  float delta[query_tile];  // dout . out of each query
};
static_assert(sizeof(BackwardBuffers) <= cpu_slot_bytes);

/// One sequence and one key head, with its part of the scratch.
struct Task {
  SequenceRange sequence;
  std::int64_t key_head = 0;
  std::int64_t width = 0;
  std::int64_t padded_width = 0;
  float* dkeys = nullptr;  // (sequence, padded_width)
  float* dvalues = nullptr;
};

template <class T>
void load_queries(const AttentionBackwardArgs& args, const QuerySpan& span, std::int64_t head,
                  BackwardBuffers& buffers) {
  const std::int64_t width = args.head_width;
  const T* q = row_of<T>(args.q, span.begin) + head * width;
  const T* dout = row_of<T>(args.dout, span.begin) + head * width;
  const T* out = row_of<T>(args.out, span.begin) + head * width;
  fetch_rows(q, args.q.row_stride, span.count(), width);
  fetch_rows(dout, args.dout.row_stride, span.count(), width);
  fetch_rows(out, args.out.row_stride, span.count(), width);
  copy_transposed(q, args.q.row_stride, span.count(), width, args.scale, buffers.queries);
  copy_transposed(dout, args.dout.row_stride, span.count(), width, 1.0f, buffers.douts);
  copy_rows(q, args.q.row_stride, span.count(), width, args.scale, buffers.query_rows, query_tile);
  copy_rows(dout, args.dout.row_stride, span.count(), width, 1.0f, buffers.dout_rows, query_tile);
  const std::int64_t padded = round_up_to(span.count(), lanes);
  for (std::int64_t i = 0; i < padded; ++i) {
    buffers.lse[i] = 0;
    buffers.delta[i] = 0;
    if (i >= span.count()) continue;
    Vec sum = zero();
    for (std::int64_t e = 0; e < width; e += lanes)
      sum = fma(load_up_to(dout + i * args.dout.row_stride + e, width - e),
                load_up_to(out + i * args.out.row_stride + e, width - e), sum);
    buffers.lse[i] = row_of<float>(args.lse, span.begin + i)[head];
    buffers.delta[i] = reduce_add(sum);
  }
}

/// From scores and gradients of probabilities to probabilities and gradients of scores.
void differentiate_softmax(BackwardBuffers& buffers, std::int64_t queries, std::int64_t keys,
                           const Visibility& visibility) {
  for (std::int64_t key = 0; key < keys; ++key) {
    for (std::int64_t column = 0; column < queries; column += lanes) {
      float* probabilities = buffers.probabilities + key * query_tile + column;
      float* dscores = buffers.dscores + key * query_tile + column;
      Vec probability = exp(load(probabilities) - load(buffers.lse + column));
      if (visibility.partial()) probability = visibility.apply(probability, zero(), key, column);
      store(probabilities, probability);
      store(dscores, probability * (load(dscores) - load(buffers.delta + column)));
    }
  }
}

/// c (rows, E) += a (rows, depth) times `b` (depth, E) in pieces of `capacity` rows.
template <std::int64_t RowStep>
void add_product(SmallProduct product, const float* b, std::int64_t capacity,
                 std::int64_t padded_width) {
  float* c = product.c;
  for (std::int64_t piece = 0; piece * piece_width < padded_width; ++piece) {
    product.b = b + piece * capacity * piece_stride;
    product.b_step = piece_stride;
    product.c = c + piece * piece_width;
    product.columns = min_of(piece_width, padded_width - piece * piece_width);
    product.add = true;
    multiply_small<RowStep>(product);
  }
}

template <class T>
void differentiate_span(const AttentionBackwardArgs& args, const Task& task, const QuerySpan& span,
                        std::int64_t head, BackwardBuffers& buffers) {
  const std::int64_t width = task.width;
  const std::int64_t queries = span.count();
  const std::int64_t key_column = task.key_head * width;
  const auto fetch = [&](const TensorView& view, std::int64_t key) {
    fetch_rows(row_of<T>(view, key) + key_column, view.row_stride,
               min_of(key_block, max_of(0, span.end - key)), width);
  };
  fetch(args.k, span.first_key);
  fetch(args.v, span.first_key);
  load_queries<T>(args, span, head, buffers);
  for (std::int64_t i = 0; i < queries * task.padded_width; i += lanes)
    store(buffers.dqueries + i, zero());
  for (std::int64_t key = span.first_key; key < span.end; key += key_block) {
    const std::int64_t keys = min_of(key_block, span.end - key);
    copy_rows(row_of<T>(args.k, key) + key_column, args.k.row_stride, keys, width, 1.0f,
              buffers.keys, key_block);
    copy_rows(row_of<T>(args.v, key) + key_column, args.v.row_stride, keys, width, 1.0f,
              buffers.values, key_block);
    fetch(args.k, key + key_block);
    fetch(args.v, key + key_block);
    score_product(buffers.keys, buffers.queries, keys, queries, width, buffers.probabilities);
    score_product(buffers.values, buffers.douts, keys, queries, width, buffers.dscores);
    differentiate_softmax(buffers, queries, keys, Visibility(span, key, keys, args.window));
    const std::int64_t offset = (key - task.sequence.begin) * task.padded_width;
    SmallProduct by_key{.a = buffers.probabilities,
                        .c = task.dvalues + offset,
                        .c_stride = task.padded_width,
                        .rows = keys,
                        .depth = queries};
    add_product<query_tile>(by_key, buffers.dout_rows, query_tile, task.padded_width);
    by_key.a = buffers.dscores;
    by_key.c = task.dkeys + offset;
    add_product<query_tile>(by_key, buffers.query_rows, query_tile, task.padded_width);
    add_product<1>({.a = buffers.dscores,
                    .a_step = query_tile,
                    .c = buffers.dqueries,
                    .c_stride = task.padded_width,
                    .rows = queries,
                    .depth = keys},
                   buffers.keys, key_block, task.padded_width);
  }
  const Vec scale = broadcast(args.scale);
  for (std::int64_t i = 0; i < queries; ++i) {
    T* dq = row_of<T>(args.dq, span.begin + i) + head * width;
    for (std::int64_t e = 0; e < width; e += lanes)
      store_up_to(dq + e, load(buffers.dqueries + i * task.padded_width + e) * scale, width - e);
  }
}

/// Rounds a task's rows of scratch to the type of the gradients.
template <class T>
void write_rows(const float* from, std::int64_t padded_width, const SequenceRange& rows,
                std::int64_t width, std::int64_t column, const TensorView& to) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t e = 0; e < width; e += lanes)
      store_up_to(row_of<T>(to, row) + column + e,
                  load(from + (row - rows.begin) * padded_width + e), width - e);
}

template <class T>
void differentiate_task(const AttentionBackwardArgs& args, const Task& task,
                        BackwardBuffers& buffers) {
  const SequenceRange& sequence = task.sequence;
  const std::int64_t scratch = (sequence.end - sequence.begin) * task.padded_width;
  for (std::int64_t i = 0; i < scratch; i += lanes) {
    store(task.dkeys + i, zero());
    store(task.dvalues + i, zero());
  }
  const std::int64_t group = args.query_heads / args.key_heads;
  for (std::int64_t begin = sequence.begin; begin < sequence.end; begin += query_tile) {
    const QuerySpan span{.begin = begin,
                         .end = min_of(sequence.end, begin + query_tile),
                         .first_key = first_visible_key(begin, sequence.begin, args.window)};
    for (std::int64_t head = task.key_head * group; head < (task.key_head + 1) * group; ++head)
      differentiate_span<T>(args, task, span, head, buffers);
  }
  const std::int64_t column = task.key_head * task.width;
  write_rows<T>(task.dkeys, task.padded_width, sequence, task.width, column, args.dk);
  write_rows<T>(task.dvalues, task.padded_width, sequence, task.width, column, args.dv);
}

}  // namespace

void attention_backward(const AttentionBackwardArgs& args, device::Queue& queue) {
  const AttentionShape shape = check_shapes(args);
  const auto* starts = args.sequence_starts.as<std::int32_t>();
  Workspace& workspace = Workspace::for_threads(queue.pool().thread_count());
  std::int64_t sequences = 0;
  while (starts[sequences] < shape.rows) ++sequences;
  const std::int64_t padded_width = round_up_to(shape.head_width, lanes);
  float* dkeys = args.scratch.as<float>();
  float* dvalues = dkeys + shape.rows * shape.key_heads * padded_width;
  with_storage(args.q.type, [&](auto tag) {
    using T = decltype(tag);
    queue.pool().parallel_for(sequences * shape.key_heads, [&](std::int64_t tile) {
      const std::int64_t sequence = tile / shape.key_heads;
      const std::int64_t key_head = tile % shape.key_heads;
      const SequenceRange range{starts[sequence], starts[sequence + 1]};
      if (range.begin == range.end) return;
      const Workspace::Slot slot(workspace);
      const std::int64_t offset = (key_head * shape.rows + range.begin) * padded_width;
      differentiate_task<T>(args,
                            {.sequence = range,
                             .key_head = key_head,
                             .width = shape.head_width,
                             .padded_width = padded_width,
                             .dkeys = dkeys + offset,
                             .dvalues = dvalues + offset},
                            *reinterpret_cast<BackwardBuffers*>(slot.data()));
    });
  });
  if (args.cosine.data == nullptr) return;
  for (const TensorView& x : {args.dq, args.dk})
    rope_apply({.x = x,
                .cosine = args.cosine,
                .sine = args.sine,
                .head_width = shape.head_width,
                .inverse = true},
               queue);
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
