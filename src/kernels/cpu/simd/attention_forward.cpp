// Attention in tiles of queries with a running softmax (Milakov and Gimelshein 2018; Dao et al.
// 2022). Scores are kept as (keys, queries): the maximum, the sum and the rescaling of each query
// are then plain vector operations.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd/attention_tile.h"
#include "kernels/cpu/simd/exp.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/workspace.h"
#include "kernels/facts/facts.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

namespace {

constexpr std::int64_t pieces = largest_head_width / piece_width;
/// Below any real score; finite, so that the difference of two of them is 0.
constexpr float lowest_score = -1e30f;

struct ForwardBuffers {
  float queries[largest_head_width * query_tile];  // (E, query_tile), times the scale
  float keys[pieces * key_block * piece_stride];   // (key_block, E) in pieces
  float values[key_block * largest_head_width];    // (key_block, E)
  float scores[key_block * query_tile];            // (key_block, query_tile), then e^score
  float mixed[largest_head_width * query_tile];    // (E, query_tile), sums of e^score * value
  float largest[query_tile];
  float sum[query_tile];
};
static_assert(sizeof(ForwardBuffers) <= cpu_slot_bytes);

/// From scores to exponentials; rescales what was summed under a smaller maximum.
void update_softmax(ForwardBuffers& buffers, const QuerySpan& span, std::int64_t keys,
                    std::int64_t width, const Visibility& visibility) {
  const Vec hidden = broadcast(-__builtin_inff());
  for (std::int64_t column = 0; column < span.count(); column += lanes) {
    float* scores = buffers.scores + column;
    const Vec before = load(buffers.largest + column);
    Vec largest = before;
    for (std::int64_t key = 0; key < keys; ++key) {
      Vec score = load(scores + key * query_tile);
      if (visibility.partial()) {
        score = visibility.apply(score, hidden, key, column);
        store(scores + key * query_tile, score);
      }
      largest = max(largest, score);
    }
    Vec sum = zero();
    for (std::int64_t key = 0; key < keys; ++key) {
      const Vec weight = exp(load(scores + key * query_tile) - largest);
      store(scores + key * query_tile, weight);
      sum = sum + weight;
    }
    const Vec rescale = exp(before - largest);
    store(buffers.largest + column, largest);
    store(buffers.sum + column, fma(load(buffers.sum + column), rescale, sum));
    for (std::int64_t e = 0; e < width; ++e) {
      float* mixed = buffers.mixed + e * query_tile + column;
      store(mixed, load(mixed) * rescale);
    }
  }
}

/// out row = mixed column / sum.
template <class T>
void write_out(const ForwardBuffers& buffers, std::int64_t queries, std::int64_t width, T* out,
               std::int64_t out_stride) {
  for (std::int64_t first = 0; first < queries; first += lanes) {
    const Vec factor = broadcast(1.0f) / load(buffers.sum + first);
    const std::int64_t count = min_of(lanes, queries - first);
    for (std::int64_t e = 0; e < width; e += lanes) {
      Vec block[lanes];
      for (int i = 0; i < lanes; ++i)
        block[i] =
            e + i < width ? load(buffers.mixed + (e + i) * query_tile + first) * factor : zero();
      transpose(block);
      for (std::int64_t i = 0; i < count; ++i)
        store_up_to(out + (first + i) * out_stride + e, block[i], width - e);
    }
  }
}

template <class T>
void attend(const AttentionForwardArgs& args, const QuerySpan& span, std::int64_t head,
            ForwardBuffers& buffers) {
  const std::int64_t width = args.head_width;
  const std::int64_t padded_width = round_up_to(width, lanes);
  const std::int64_t key_column = head / (args.query_heads / args.key_heads) * width;
  const std::int64_t columns = round_up_to(span.count(), lanes);
  const auto fetch = [&](const TensorView& view, std::int64_t key) {
    fetch_rows(row_of<T>(view, key) + key_column, view.row_stride,
               min_of(key_block, max_of(0, span.end - key)), width);
  };
  fetch(args.k, span.first_key);
  fetch(args.v, span.first_key);
  copy_transposed(row_of<T>(args.q, span.begin) + head * width, args.q.row_stride, span.count(),
                  width, args.scale, buffers.queries);
  for (std::int64_t i = 0; i < width; ++i)
    for (std::int64_t column = 0; column < columns; column += lanes)
      store(buffers.mixed + i * query_tile + column, zero());
  for (std::int64_t column = 0; column < columns; column += lanes) {
    store(buffers.largest + column, broadcast(lowest_score));
    store(buffers.sum + column, zero());
  }
  for (std::int64_t key = span.first_key; key < span.end; key += key_block) {
    const std::int64_t keys = min_of(key_block, span.end - key);
    copy_rows(row_of<T>(args.k, key) + key_column, args.k.row_stride, keys, width, 1.0f,
              buffers.keys, key_block);
    fetch(args.k, key + key_block);
    score_product(buffers.keys, buffers.queries, keys, span.count(), width, buffers.scores);
    update_softmax(buffers, span, keys, width, Visibility(span, key, keys, args.window));
    for (std::int64_t row = 0; row < keys; ++row) {
      const T* value = row_of<T>(args.v, key + row) + key_column;
      for (std::int64_t e = 0; e < width; e += lanes)
        store(buffers.values + row * padded_width + e, load_up_to(value + e, width - e));
    }
    fetch(args.v, key + key_block);
    multiply_small<1>({.a = buffers.values,
                       .a_step = padded_width,
                       .b = buffers.scores,
                       .b_step = query_tile,
                       .c = buffers.mixed,
                       .c_stride = query_tile,
                       .rows = width,
                       .columns = columns,
                       .depth = keys,
                       .add = true});
  }
  write_out(buffers, span.count(), width, row_of<T>(args.out, span.begin) + head * width,
            args.out.row_stride);
  if (args.lse.data == nullptr) return;
  for (std::int64_t i = 0; i < span.count(); ++i)
    row_of<float>(args.lse, span.begin + i)[head] = static_cast<float>(
        static_cast<double>(buffers.largest[i]) + std::log(static_cast<double>(buffers.sum[i])));
}

}  // namespace

void attention_forward(const AttentionForwardArgs& args, device::Queue& queue) {
  const AttentionShape shape = check_shapes(args);
  const auto* starts = args.sequence_starts.as<std::int32_t>();
  Workspace& workspace = Workspace::for_threads(queue.pool().thread_count());
  const std::int64_t tiles = (shape.rows + query_tile - 1) / query_tile;
  with_storage(args.q.type, [&](auto tag) {
    using T = decltype(tag);
    queue.pool().parallel_for(tiles * shape.query_heads, [&](std::int64_t tile) {
      const Workspace::Slot slot(workspace);
      auto& buffers = *reinterpret_cast<ForwardBuffers*>(slot.data());
      // Tiles cut the flat rows; a tile may hold parts of several sequences. The last rows come
      // first: they see the most keys, and short tiles at the end even out the threads.
      const std::int64_t begin = (tiles - 1 - tile / shape.query_heads) * query_tile;
      const std::int64_t end = min_of(shape.rows, begin + query_tile);
      QuerySpan span{.begin = begin};
      while (span.begin < end) {
        const SequenceRange sequence = sequence_of(starts, shape.rows, span.begin);
        span.end = min_of(end, sequence.end);
        span.first_key = first_visible_key(span.begin, sequence.begin, args.window);
        attend<T>(args, span, tile % shape.query_heads, buffers);
        span.begin = span.end;
      }
    });
  });
}

namespace {

/// `view` as if `rows` rows of the same stride stood before it: its row `rows` is row 0 of `view`.
TensorView after_rows(TensorView view, std::int64_t rows) {
  view.data = static_cast<std::byte*>(view.data) - bytes_of(view.type, rows * view.row_stride);
  return view;
}

template <class T>
void add_rows(const TensorView& from, const TensorView& cache, std::int64_t held) {
  for (std::int64_t row = 0; row < from.rows; ++row)
    std::copy_n(row_of<T>(from, row), from.columns, row_of<T>(cache, held + row));
}

}  // namespace

// The sequence's tiles of queries, cut where attention_forward cuts the whole of it; the first begins later.
void attention_cached(const AttentionCachedArgs& args, device::Queue& queue) {
  const AttentionShape shape = check_shapes(args);
  if (shape.rows == 0) return;
  const std::int64_t held = args.positions.as<std::int32_t>()[0];
  const AttentionForwardArgs whole{.q = after_rows(args.q, held),
                                   .k = args.keys,
                                   .v = args.values,
                                   .out = after_rows(args.out, held),
                                   .query_heads = args.query_heads,
                                   .key_heads = args.key_heads,
                                   .head_width = args.head_width,
                                   .window = args.window,
                                   .scale = args.scale};
  const std::int64_t end = held + shape.rows;
  const std::int64_t first_tile = held / query_tile;
  const std::int64_t tiles = (end + query_tile - 1) / query_tile - first_tile;
  Workspace& workspace = Workspace::for_threads(queue.pool().thread_count());
  with_storage(args.q.type, [&](auto tag) {
    using T = decltype(tag);
    add_rows<T>(args.k, args.keys, held);
    add_rows<T>(args.v, args.values, held);
    queue.pool().parallel_for(tiles * shape.query_heads, [&](std::int64_t tile) {
      const Workspace::Slot slot(workspace);
      auto& buffers = *reinterpret_cast<ForwardBuffers*>(slot.data());
      const std::int64_t begin = (first_tile + tile / shape.query_heads) * query_tile;
      attend<T>(whole,
                {.begin = max_of(begin, held),
                 .end = min_of(end, begin + query_tile),
                 .first_key = first_visible_key(begin, 0, args.window)},
                tile % shape.query_heads, buffers);
    });
  });
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
