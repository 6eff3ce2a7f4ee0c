#pragma once
// A kernel case: operands with their types, shapes and contents, a call, and how far a backend may
// be from the reference. The same table of cases (cases.h) feeds conformance, canary, thread and
// finite-difference tests and bench/kernels_bench.cpp.

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/kernels.h"
#include "kernels/reference/element.h"

namespace underkeel::kernels::cases {

enum class Role {
  input,     // must not be changed
  prepared,  // an input that Case::prepare fills
  output,    // poisoned with NaN, then written whole
  in_out,    // read and written
  scratch,   // poisoned; what is left in it does not count
};

/// |got - want| <= absolute + relative * |want| for every element, after allowing `roundings` of
/// the storage type on either side; and the same relative error in the L2 norm of the tensor.
struct Bound {
  double absolute = 0;
  double relative = 0;
  int roundings = 1;
  double relative_l2 = 5e-6;  // of f32 work alone; see docs/numerics.md
  bool same_bits = false;
  double from_tensor_cores = 0;  // more of `absolute` where 16-bit operands are made on the way
};

using Fill = std::function<double(std::int64_t row, std::int64_t column)>;

struct Operand {
  std::string name;
  Role role = Role::input;
  DType type = DType::f32;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  Fill fill;                    // for input and in_out
  Bound bound;                  // for output and in_out
  std::int64_t stride_gap = 0;  // elements between rows that belong to nobody
  int alias_of = -1;            // shares the memory of that operand
};

using Views = std::span<const TensorView>;

struct Case {
  std::string operation;
  std::string name;
  std::vector<Operand> operands;
  std::function<void(const KernelTable&, Views, device::Queue&)> run;
  /// The forward pass that a backward case starts from; always by the reference.
  std::function<void(Views, device::Queue&)> prepare;
  /// Loss as a function of the inputs, for finite differences, and which operand holds the gradient
  /// of which input. Empty: no such check.
  std::function<double(Views, device::Queue&)> loss;
  std::vector<std::pair<int, int>> gradients;  // input operand, gradient operand
  double flops = 0;
  bool benchmark = false;  // large: only for the benchmark, the reference would take seconds
};

inline std::string full_name(const Case& item) {
  return item.operation + ", " + item.name;
}

/// Uniform in [-amplitude, amplitude) plus `middle`.
inline Fill uniform(std::uint32_t seed, double amplitude, double middle = 0) {
  return [=](std::int64_t row, std::int64_t column) {
    const float unit =
        random_uniform(seed, static_cast<std::uint32_t>(row), static_cast<std::uint64_t>(column));
    return middle + amplitude * (2 * static_cast<double>(unit) - 1);
  };
}
/// Whole numbers in [0, limit).
inline Fill below(std::uint32_t seed, std::int64_t limit) {
  return [=](std::int64_t row, std::int64_t column) {
    return static_cast<double>(
        random_word(seed, static_cast<std::uint32_t>(row), static_cast<std::uint64_t>(column)) %
        limit);
  };
}
inline Fill values(std::vector<double> list) {
  return [list = std::move(list)](std::int64_t row, std::int64_t column) {
    return list[static_cast<std::size_t>(row + column)];  // a vector: one of them is 0
  };
}
inline Fill constant(double value) {
  return [value](std::int64_t, std::int64_t) { return value; };
}

/// Memory for the operands of one case, with guard bytes before, between rows and behind.
class Instance {
 public:
  /// `follow_aliases` false gives every operand its own memory.
  explicit Instance(const Case& item, bool follow_aliases = true) : case_(&item) {
    for (const Operand& operand : item.operands) {
      if (operand.alias_of >= 0 && follow_aliases) {
        views_.push_back(views_[static_cast<std::size_t>(operand.alias_of)]);
        blocks_.emplace_back();
        continue;
      }
      const std::int64_t stride = operand.columns + operand.stride_gap;
      const std::int64_t size_bytes = bytes_of(operand.type, operand.rows * stride);
      Block block{.size_bytes = size_bytes};
      block.bytes = std::make_unique<std::byte[]>(
          static_cast<std::size_t>(size_bytes + 2 * guard_bytes + alignment_bytes));
      std::memset(block.bytes.get(), guard_pattern,
                  static_cast<std::size_t>(size_bytes + 2 * guard_bytes + alignment_bytes));
      const auto address = reinterpret_cast<std::uintptr_t>(block.bytes.get()) + guard_bytes;
      block.offset = static_cast<std::int64_t>((alignment_bytes - address % alignment_bytes) %
                                               alignment_bytes) +
                     guard_bytes;
      views_.push_back({.data = block.bytes.get() + block.offset,
                        .type = operand.type,
                        .rows = operand.rows,
                        .columns = operand.columns,
                        .row_stride = stride});
      blocks_.push_back(std::move(block));
      fill(operand, views_.back());
    }
  }

  Views views() const { return views_; }
  const TensorView& view(int operand) const { return views_[static_cast<std::size_t>(operand)]; }

  void prepare(device::Queue& queue) {
    if (case_->prepare) case_->prepare(views_, queue);
  }
  void run(const KernelTable& table, device::Queue& queue) { case_->run(table, views_, queue); }

  /// An operand's memory with the guard bytes around it, to be copied to a device and back.
  struct Region {
    int operand = 0;
    std::byte* begin = nullptr;
    std::int64_t size_bytes = 0;
    std::int64_t data_offset = 0;  // of element (0, 0)
  };
  std::vector<Region> regions() {
    std::vector<Region> all;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (blocks_[i].bytes)
        all.push_back({.operand = static_cast<int>(i),
                       .begin = blocks_[i].bytes.get() + blocks_[i].offset - guard_bytes,
                       .size_bytes = blocks_[i].size_bytes + 2 * guard_bytes,
                       .data_offset = guard_bytes});
    return all;
  }

  /// Operands outside whose elements something was written.
  std::vector<std::string> damaged() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (blocks_[i].bytes && is_damaged(blocks_[i], views_[i]))
        names.push_back(case_->operands[i].name);
    return names;
  }

 private:
  static constexpr std::int64_t guard_bytes = 256;
  static constexpr std::int64_t alignment_bytes = 64;
  static constexpr int guard_pattern = 0xA5;

  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::int64_t size_bytes = 0;
    std::int64_t offset = 0;
  };

  static void fill(const Operand& operand, const TensorView& view) {
    for (std::int64_t row = 0; row < view.rows; ++row) {
      if (operand.fill) {
        for (std::int64_t column = 0; column < view.columns; ++column)
          reference::store(view, row, column, operand.fill(row, column));
        continue;
      }
      std::memset(static_cast<std::byte*>(view.data) + bytes_of(view.type, row * view.row_stride),
                  0xFF, static_cast<std::size_t>(bytes_of(view.type, view.columns)));  // NaN
    }
  }

  static bool is_damaged(const Block& block, const TensorView& view) {
    const auto whole = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        if (block.bytes[static_cast<std::size_t>(i)] != std::byte{guard_pattern}) return false;
      return true;
    };
    if (!whole(block.offset - guard_bytes, block.offset)) return true;
    const std::int64_t end = block.offset + block.size_bytes;
    if (!whole(end, end + guard_bytes)) return true;
    const std::int64_t row_bytes = bytes_of(view.type, view.columns);
    const std::int64_t stride_bytes = bytes_of(view.type, view.row_stride);
    for (std::int64_t row = 0; row < view.rows; ++row)
      if (!whole(block.offset + row * stride_bytes + row_bytes,
                 block.offset + (row + 1) * stride_bytes))
        return true;
    return false;
  }

  const Case* case_;
  std::vector<Block> blocks_;
  std::vector<TensorView> views_;
};

/// The elements of a view side by side, to compare bits.
inline std::vector<std::byte> bytes_of_view(const TensorView& view) {
  const std::int64_t row_bytes = bytes_of(view.type, view.columns);
  std::vector<std::byte> bytes(static_cast<std::size_t>(view.rows * row_bytes));
  for (std::int64_t row = 0; row < view.rows; ++row)
    if (row_bytes > 0)
      std::memcpy(
          bytes.data() + row * row_bytes,
          static_cast<const std::byte*>(view.data) + bytes_of(view.type, row * view.row_stride),
          static_cast<std::size_t>(row_bytes));
  return bytes;
}

}  // namespace underkeel::kernels::cases
