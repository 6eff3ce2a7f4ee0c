// Matrix product in tiles that follow from the shape alone. One operand (b, or a when c has few
// rows) is packed whole into shared memory by all threads; then each tile packs its part of the
// other operand and multiplies. Sums are f32 over blocks of depth, in order, so neither the number
// of threads nor the instruction set's tile sizes change which terms are added before which.
// Measured against oneDNN: docs/decisions/0002-cpu-matmul.md.

#include <cstring>

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/matmul_few_rows.h"
#include "kernels/cpu/simd/matmul_pack.h"
#include "kernels/cpu/workspace.h"
#include "kernels/facts/facts.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

namespace {

constexpr std::int64_t shared_floats = cpu_shared_bytes / 4;
constexpr std::int64_t slot_floats = cpu_slot_bytes / 4;

/// Rows of a tile when b is shared; their packed block stays in the second cache.
constexpr std::int64_t tile_rows = 210;
static_assert(tile_rows % panel_rows == 0);
/// Columns of a tile when a is shared.
constexpr std::int64_t tile_columns = 512;
/// A c that is not f32 needs its sums kept elsewhere when depth comes in several chunks. That is
/// put off until depth is this large; then shared memory holds them behind the packed panels.
constexpr std::int64_t single_chunk_depth = 22 * depth_block;
constexpr std::int64_t sums_floats = shared_floats / 4;

/// A rectangle of c.
struct Block {
  std::int64_t row, column, rows, columns;
};

/// Where f32 sums of a rectangle are kept: c itself, or memory beside it.
struct Sums {
  float* data;
  std::int64_t stride;
};

template <class T, int Rows, PanelOrder Order>
void multiply_rows(const float* a, const float* b, std::int64_t depth, const Sums& sums, bool add,
                   const Later& later = {}) {
  constexpr bool by_row = Order == PanelOrder::by_row;
  multiply_panel<Rows, panel_vectors, by_row ? packed_row_stride : 1, T>(
      a, by_row ? 1 : panel_rows, b, panel_columns, depth, sums.data, sums.stride, add, later);
}

/// A panel of fewer rows or columns than multiply_rows writes: computed beside, then copied.
template <class T, int Rows, PanelOrder Order>
void multiply_edge(const float* a, const float* b, std::int64_t depth, const Sums& sums,
                   std::int64_t rows, std::int64_t columns, bool add) {
  if constexpr (Rows > 1) {
    if (rows <= Rows / 2)
      return multiply_edge<T, Rows / 2, Order>(a, b, depth, sums, rows, columns, add);
  }
  alignas(64) float whole[Rows * panel_columns];
  multiply_rows<T, Rows, Order>(a, b, depth, {whole, panel_columns}, false);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; column += lanes) {
      float* to = sums.data + row * sums.stride + column;
      const std::int64_t left = columns - column;
      const Vec value = load(whole + row * panel_columns + column);
      store_up_to(to, add ? load_up_to(to, left) + value : value, left);
    }
  }
}

/// sums = [sums +] packed rows times packed columns. Meanwhile `depth` rows of `later` are fetched,
/// or, where it is empty, the panel of b that comes after the one in use.
template <class T, PanelOrder Order>
void multiply_block(const float* packed_rows, std::int64_t rows, const float* packed_columns,
                    std::int64_t columns, std::int64_t depth, const Sums& sums, bool add,
                    Later later) {
  const bool next_panel = later.from == nullptr;
  const std::int64_t row_panels = ceil_of(rows, panel_rows);
  const std::int64_t parts = next_panel ? row_panels : row_panels * ceil_of(columns, panel_columns);
  const std::int64_t part_rows = ceil_of(depth, parts);
  for (std::int64_t column = 0; column < columns; column += panel_columns) {
    const float* b = packed_columns + column * depth;
    if (next_panel)
      later = {.from = reinterpret_cast<const char*>(b + panel_columns * depth),
               .row_bytes = panel_columns * 4,
               .line_shift = panel_columns == 64 ? 2 : 0};
    for (std::int64_t row = 0; row < rows; row += panel_rows) {
      const float* a = packed_rows + rows_panel_offset(row / panel_rows);
      const Sums part{sums.data + row * sums.stride + column, sums.stride};
      if (rows - row >= panel_rows && columns - column >= panel_columns)
        multiply_rows<T, panel_rows, Order>(a, b, depth, part, add, later);
      else
        multiply_edge<T, panel_rows, Order>(a, b, depth, part, min_of(panel_rows, rows - row),
                                            min_of(panel_columns, columns - column), add);
      later.from += part_rows * later.row_bytes;
    }
  }
}

/// c = round(sums [+ c] [+ bias]), where sums may be c itself.
template <class T, class C>
void finish(const MatmulArgs& args, const Block& block, const Sums& sums, bool add) {
  const T* bias = args.bias.as<T>();
  for (std::int64_t row = 0; row < block.rows; ++row) {
    C* c = args.c.as<C>() + (block.row + row) * args.c.row_stride + block.column;
    for (std::int64_t column = 0; column < block.columns; column += lanes) {
      const std::int64_t left = block.columns - column;
      Vec value = load_up_to(sums.data + row * sums.stride + column, left);
      if (add) value = value + load_up_to(c + column, left);
      if (bias != nullptr) value = value + load_up_to(bias + block.column + column, left);
      store_up_to(c + column, value, left);
    }
  }
}

template <class T, class C>
class Product {
 public:
  Product(const MatmulArgs& args, const MatmulShape& shape, device::Queue& queue)
      : args_(args),
        shape_(shape),
        pool_(queue.pool()),
        workspace_(Workspace::for_threads(queue.pool().thread_count())),
        a_{args.a.as<T>(), args.a.row_stride, !args.transpose_a, shape.k},
        b_{args.b.as<T>(), args.b.row_stride, args.transpose_b, shape.k},
        depth_(ceil_of(shape.k, cell_elements<T>)),
        sums_apart_(!c_is_f32 && depth_ > single_chunk_depth) {}

  void run() {
    const std::int64_t most_columns =
        sums_apart_ ? min_of(shape_.n, sums_floats / panel_rows) : shape_.n;
    const std::int64_t most_rows =
        sums_apart_ ? min_of(shape_.m, sums_floats / most_columns) : shape_.m;
    for (std::int64_t row = 0; row < shape_.m; row += most_rows) {
      for (std::int64_t column = 0; column < shape_.n; column += most_columns) {
        const Block block{row, column, min_of(most_rows, shape_.m - row),
                          min_of(most_columns, shape_.n - column)};
        multiply_whole(block);
      }
    }
  }

 private:
  static constexpr bool c_is_f32 = sizeof(C) == 4;

  /// How the shared operand is cut: lines and depth of what is packed at once, in equal parts.
  struct Cut {
    std::int64_t lines = 0;
    std::int64_t depth = 0;
    std::int64_t line_chunks = 0;
  };

  /// The largest pieces of `lines` lines that shared memory holds, `line_floats` of it for each line
  /// and block of depth. Where c can hold sums between chunks, depth is cut rather than lines: that
  /// packs the other operand once. `most_lines` bounds a piece for another reason.
  Cut cut(std::int64_t lines, std::int64_t line_floats, std::int64_t unit,
          std::int64_t most_lines) const {
    const std::int64_t blocks = ceil_of(depth_, depth_block);
    const std::int64_t fit = shared_floats - (sums_apart_ ? sums_floats : 0);
    const std::int64_t padded = ceil_of(lines, unit) * unit;
    std::int64_t chunk_blocks = blocks;
    // Not below four blocks: c is then read and written too often.
    if (c_is_f32) chunk_blocks = min_of(blocks, max_of(4, fit / (padded * line_floats)));
    if (sums_apart_) chunk_blocks = min_of(blocks, 10);
    const std::int64_t depth_chunks = ceil_of(blocks, chunk_blocks);
    chunk_blocks = ceil_of(blocks, depth_chunks);
    const std::int64_t fit_lines =
        min_of(most_lines, fit / (chunk_blocks * line_floats)) / unit * unit;
    const std::int64_t line_chunks = ceil_of(lines, fit_lines);
    return {.lines = ceil_of(ceil_of(lines, line_chunks), unit) * unit,
            .depth = chunk_blocks * depth_block,
            .line_chunks = line_chunks};
  }

  /// Chooses which operand all tiles share: the one that makes less packing.
  void multiply_whole(const Block& block) {
    // Sums beside the packed rows, where c cannot hold them.
    constexpr std::int64_t tile_width = (slot_floats - packed_rows_floats(tile_rows)) / tile_rows;
    const std::int64_t most_columns =
        c_is_f32 || sums_apart_ ? block.columns + panel_columns : tile_width;
    const Cut columns = cut(block.columns, depth_block, panel_columns, most_columns);
    const Cut rows = cut(block.rows, packed_row_stride, panel_rows, block.rows + panel_rows);
    const std::int64_t sharing_b = block.columns + columns.line_chunks * block.rows;
    const std::int64_t sharing_a = block.rows + rows.line_chunks * block.columns;
    // Packed rows of a stay in the second cache when each tile packs its own, or when they are few;
    // many shared rows come from farther away, which must save much packing to be worth it.
    const bool few_rows = block.rows <= 512 && block.columns > block.rows;
    const bool share_rows = few_rows || 3 * sharing_a < 2 * sharing_b;
    const Cut& chosen = share_rows ? rows : columns;
    for (std::int64_t k = 0; k < depth_; k += chosen.depth) {
      const std::int64_t depth = min_of(chosen.depth, depth_ - k);
      const std::int64_t lines = share_rows ? block.rows : block.columns;
      for (std::int64_t line = 0; line < lines; line += chosen.lines) {
        const std::int64_t count = min_of(chosen.lines, lines - line);
        if (share_rows)
          share_a({block.row + line, block.column, count, block.columns}, block, k, depth);
        else
          share_b({block.row, block.column + line, block.rows, count}, block, k, depth);
      }
    }
  }

  /// `whole` is the rectangle that sums in shared memory belong to, `part` lies in it.
  void share_b(const Block& part, const Block& whole, std::int64_t k, std::int64_t depth) {
    float* packed = workspace_.shared();
    const std::int64_t padded = packed_columns_floats(part.columns, 1);
    const std::int64_t blocks = ceil_of(depth, depth_block);
    constexpr std::int64_t group = 4 * panel_columns;  // columns that one tile packs
    const std::int64_t groups = ceil_of(part.columns, group);
    pool_.parallel_for(groups * blocks, [&](std::int64_t tile) {
      const std::int64_t begin = tile % groups * group;
      const std::int64_t start = tile / groups * depth_block;
      const std::int64_t length = min_of(depth_block, depth - start);
      pack_columns(b_, part.column + begin, part.column + min_of(part.columns, begin + group),
                   k + start, length, packed + start * padded + begin * length);
    });
    const std::int64_t tiles = ceil_of(part.rows, tile_rows);
    const std::int64_t height = even_height(part.rows, tiles);
    pool_.parallel_for(ceil_of(part.rows, height), [&](std::int64_t tile) {
      const Workspace::Slot slot(workspace_);
      const std::int64_t row = tile * height;
      const Block block{part.row + row, part.column, min_of(height, part.rows - row), part.columns};
      const Sums sums = sums_of(block, whole, slot.data() + packed_rows_floats(tile_rows));
      for (std::int64_t start = 0; start < depth; start += depth_block) {
        const std::int64_t length = min_of(depth_block, depth - start);
        pack_rows(a_, block.row, block.row + block.rows, k + start, length, slot.data());
        multiply(slot.data(), block.rows, packed + start * padded, block.columns, length, sums,
                 k + start > 0 || (c_is_f32 && args_.accumulate));
      }
      finish_block(block, sums, k + depth);
    });
  }

  void share_a(const Block& part, const Block& whole, std::int64_t k, std::int64_t depth) {
    float* packed = workspace_.shared();
    const std::int64_t block_floats = packed_rows_floats(part.rows);
    const std::int64_t blocks = ceil_of(depth, depth_block);
    constexpr std::int64_t group = 8 * panel_rows;  // rows that one tile packs
    const std::int64_t groups = ceil_of(part.rows, group);
    const auto pack_group = [&](std::int64_t tile) {
      const std::int64_t begin = tile % groups * group;
      const std::int64_t start = tile / groups * depth_block;
      const std::int64_t length = min_of(depth_block, depth - start);
      pack_rows(a_, part.row + begin, part.row + min_of(part.rows, begin + group), k + start,
                length,
                packed + tile / groups * block_floats + rows_panel_offset(begin / panel_rows));
    };
    // Rows that are few cost less than waking threads, and then columns are used where they lie.
    if (part.rows <= unpacked_rows && b_.depth_is_contiguous) {
      for (std::int64_t tile = 0; tile < blocks; ++tile) pack_group(tile);
      return a_.depth_is_contiguous ? multiply_few<PanelOrder::by_row>(part, whole, k, depth)
                                    : multiply_few<PanelOrder::by_depth>(part, whole, k, depth);
    }
    pool_.parallel_for(groups * blocks, pack_group);
    // Eight tiles where they stay wide enough; narrower ones when the sums of a tall tile would not
    // fit beside its packed columns. Columns are packed once however many tiles there are.
    constexpr std::int64_t columns_floats = tile_columns * depth_block;
    const std::int64_t fit = (slot_floats - columns_floats) / part.rows;
    const std::int64_t wanted = max_of(128, (part.columns + 7) / 8);
    const std::int64_t width =
        max_of(1, min_of(min_of(tile_columns, wanted), fit) / panel_columns) * panel_columns;
    pool_.parallel_for(ceil_of(part.columns, width), [&](std::int64_t tile) {
      const Workspace::Slot slot(workspace_);
      const std::int64_t column = tile * width;
      const Block block{part.row, part.column + column, part.rows,
                        min_of(width, part.columns - column)};
      const Sums sums = sums_of(block, whole, slot.data() + columns_floats);
      for (std::int64_t start = 0; start < depth; start += depth_block) {
        const std::int64_t length = min_of(depth_block, depth - start);
        pack_columns(b_, block.column, block.column + block.columns, k + start, length,
                     slot.data());
        // Rows of depth that the next round packs lie on pages of their own.
        Later later;
        if (!b_.depth_is_contiguous && start + length < depth)
          later = {.from = reinterpret_cast<const char*>(b_.at(block.column, k + start + length)),
                   .row_bytes = b_.stride * static_cast<std::int64_t>(sizeof(T)),
                   .line_shift = sizeof(T) == 4 ? 3 : 2};
        multiply(packed + start / depth_block * block_floats, block.rows, slot.data(),
                 block.columns, length, sums, k + start > 0 || (c_is_f32 && args_.accumulate),
                 later);
      }
      finish_block(block, sums, k + depth);
    });
  }

  /// The product with few packed rows, in shared memory. Every element of b is used once, so packing it
  /// would only be more to read and write.
  template <PanelOrder Order>
  void multiply_few(const Block& part, const Block& whole, std::int64_t k, std::int64_t depth) {
    constexpr std::int64_t width = 128;
    pool_.parallel_for(ceil_of(part.columns, width), [&](std::int64_t tile) {
      const Workspace::Slot slot(workspace_);
      const std::int64_t column = tile * width;
      const Block block{part.row, part.column + column, part.rows,
                        min_of(width, part.columns - column)};
      const Sums sums = sums_of(block, whole, slot.data());
      const FewRows<T, Order> product{.a = workspace_.shared(),
                                      .a_block = packed_rows_floats(part.rows),
                                      .rows = part.rows,
                                      .b = b_,
                                      .begin = block.column,
                                      .end = block.column + block.columns,
                                      .k = k,
                                      .depth = depth,
                                      .c = sums.data,
                                      .c_stride = sums.stride,
                                      .add = k > 0 || (c_is_f32 && args_.accumulate)};
      product.run();
      finish_block(block, sums, k + depth);
    });
  }

  /// Rows of each tile when `tiles` tiles are to be equally high, in whole panels.
  static std::int64_t even_height(std::int64_t rows, std::int64_t tiles) {
    const std::int64_t height = (rows + tiles - 1) / tiles;
    return min_of(tile_rows, (height + panel_rows - 1) / panel_rows * panel_rows);
  }

  Sums sums_of(const Block& block, const Block& whole, float* beside) {
    if constexpr (c_is_f32)
      return {args_.c.as<float>() + block.row * args_.c.row_stride + block.column,
              args_.c.row_stride};
    if (sums_apart_)
      return {workspace_.shared() + shared_floats - sums_floats +
                  (block.row - whole.row) * whole.columns + block.column - whole.column,
              whole.columns};
    return {beside, block.columns};
  }

  void multiply(const float* rows, std::int64_t row_count, const float* columns,
                std::int64_t column_count, std::int64_t depth, const Sums& sums, bool add,
                const Later& later = {}) {
    if (a_.depth_is_contiguous)
      multiply_block<T, PanelOrder::by_row>(rows, row_count, columns, column_count, depth, sums,
                                            add, later);
    else
      multiply_block<T, PanelOrder::by_depth>(rows, row_count, columns, column_count, depth, sums,
                                              add, later);
  }

  void finish_block(const Block& block, const Sums& sums, std::int64_t k_end) {
    if (k_end < depth_) return;  // more depth is to come
    if constexpr (c_is_f32) {
      if (args_.bias.data != nullptr) finish<T, C>(args_, block, sums, false);
    } else {
      finish<T, C>(args_, block, sums, args_.accumulate);
    }
  }

  const MatmulArgs& args_;
  const MatmulShape& shape_;
  device::ThreadPool& pool_;
  Workspace& workspace_;
  const Lines<T> a_;
  const Lines<T> b_;
  const std::int64_t depth_;  // in cells, as every depth below
  const bool sums_apart_;     // in shared memory: c is not f32 and depth comes in chunks
};

/// Without depth: c is zero, or stays; the bias is added.
template <class T, class C>
void multiply_nothing(const MatmulArgs& args) {
  for (std::int64_t row = 0; row < args.c.rows; ++row) {
    C* c = args.c.as<C>() + row * args.c.row_stride;
    for (std::int64_t column = 0; column < args.c.columns; column += lanes) {
      const std::int64_t left = args.c.columns - column;
      Vec value = args.accumulate ? load_up_to(c + column, left) : zero();
      if (args.bias.data != nullptr) value = value + load_up_to(args.bias.as<T>() + column, left);
      store_up_to(c + column, value, left);
    }
  }
}

template <class T, class C>
void multiply_types(const MatmulArgs& args, const MatmulShape& shape, device::Queue& queue) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0)
    multiply_nothing<T, C>(args);
  else
    Product<T, C>(args, shape, queue).run();
}

}  // namespace

void matmul(const MatmulArgs& args, device::Queue& queue) {
  const MatmulShape shape = check_shapes(args);
  if (args.addend.data != nullptr) {
    // Plans for the CPU copy in an operation of their own.
    const auto row_of_bytes = [](const TensorView& view, std::int64_t row) {
      return static_cast<std::byte*>(view.data) + bytes_of(view.type, row * view.row_stride);
    };
    for (std::int64_t row = 0; row < args.c.rows; ++row)
      std::memcpy(row_of_bytes(args.c, row), row_of_bytes(args.addend, row),
                  static_cast<std::size_t>(bytes_of(args.c.type, args.c.columns)));
    MatmulArgs onto_copy = args;
    onto_copy.addend = {};
    onto_copy.accumulate = true;
    return matmul(onto_copy, queue);
  }
  const bool wide = args.c.type == DType::f32;
  switch (args.a.type) {
    case DType::f32:
      return multiply_types<float, float>(args, shape, queue);
    case DType::bf16:
      return wide ? multiply_types<BFloat16, float>(args, shape, queue)
                  : multiply_types<BFloat16, BFloat16>(args, shape, queue);
    default:
      return wide ? multiply_types<Float16, float>(args, shape, queue)
                  : multiply_types<Float16, Float16>(args, shape, queue);
  }
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
