#include "kernels/shapes.h"

#include <fmt/format.h>

#include "base/check.h"
#include "kernels/facts/facts.h"

namespace underkeel::kernels {

bool is_storage_type(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

namespace {

std::string text_of(const TensorView& view) {
  return fmt::format("{} ({}, {}) stride {}", name_of(view.type), view.rows, view.columns,
                     view.row_stride);
}

void check_matrix(const TensorView& view, std::int64_t rows, std::int64_t columns,
                  const char* name) {
  UK_CHECK(view.rows == rows && view.columns == columns &&
               (view.rows <= 1 || view.row_stride >= columns),
           fmt::format("{}: {} where ({}, {}) is needed", name, text_of(view), rows, columns));
}

// Any view without gaps: one row of n, n rows of one, (rows, groups).
void check_vector(const TensorView& view, std::int64_t elements, const char* name) {
  UK_CHECK(view.element_count() == elements && (view.rows <= 1 || view.row_stride == view.columns),
           fmt::format("{}: {} where {} elements are needed", name, text_of(view), elements));
}

void check_type(const TensorView& view, DType type, const char* name) {
  UK_CHECK(view.type == type,
           fmt::format("{}: {} where {} is needed", name, text_of(view), name_of(type)));
}

void check_storage(const TensorView& view, const char* name) {
  UK_CHECK(is_storage_type(view.type),
           fmt::format("{}: {} where f32, bf16 or f16 is needed", name, text_of(view)));
}

void check_type_or_f32(const TensorView& view, DType type, const char* name) {
  UK_CHECK(view.type == type || view.type == DType::f32,
           fmt::format("{}: {} where {} or f32 is needed", name, text_of(view), name_of(type)));
}

template <class Args>
AttentionShape check_attention(const Args& args) {
  const AttentionShape shape{args.q.rows, args.query_heads, args.key_heads, args.head_width};
  UK_CHECK(shape.key_heads > 0 && shape.head_width > 0 && shape.query_heads % shape.key_heads == 0,
           fmt::format("attention: {} query heads over {} key heads of width {}", shape.query_heads,
                       shape.key_heads, shape.head_width));
  UK_CHECK(
      shape.head_width <= largest_head_width,
      fmt::format("attention: head width {}, at most {}", shape.head_width, largest_head_width));
  check_storage(args.q, "attention q");
  check_matrix(args.q, shape.rows, shape.query_heads * shape.head_width, "attention q");
  check_matrix(args.out, shape.rows, shape.query_heads * shape.head_width, "attention out");
  check_matrix(args.k, shape.rows, shape.key_heads * shape.head_width, "attention k");
  check_matrix(args.v, shape.rows, shape.key_heads * shape.head_width, "attention v");
  check_matrix(args.lse, shape.rows, shape.query_heads, "attention lse");
  check_vector(args.sequence_starts, shape.rows + 1, "attention sequence_starts");
  check_type(args.k, args.q.type, "attention k");
  check_type(args.v, args.q.type, "attention v");
  check_type(args.out, args.q.type, "attention out");
  check_type(args.lse, DType::f32, "attention lse");
  check_type(args.sequence_starts, DType::i32, "attention sequence_starts");
  return shape;
}

void check_tokens(const TensorView& tokens, std::int64_t vocabulary, bool may_ignore,
                  const char* name) {
  for (std::int64_t i = 0; i < tokens.element_count(); ++i) {
    const std::int32_t token = tokens.as<std::int32_t>()[i];
    UK_CHECK((token >= 0 && token < vocabulary) || (may_ignore && token == ignore_target),
             fmt::format("{}: {} at {} in a vocabulary of {}", name, token, i, vocabulary));
  }
}

template <class Args>
std::int64_t check_norm(const Args& args) {
  UK_CHECK(args.groups > 0 && args.x.columns % args.groups == 0,
           fmt::format("rms_norm: {} columns in {} groups", args.x.columns, args.groups));
  const std::int64_t width = args.x.columns / args.groups;
  check_type(args.weight, args.x.type, "rms_norm weight");
  check_type(args.rstd, DType::f32, "rms_norm rstd");
  check_vector(args.weight, width, "rms_norm weight");
  check_vector(args.rstd, args.x.rows * args.groups, "rms_norm rstd");
  return width;
}

}  // namespace

MatmulShape check_shapes(const MatmulArgs& args) {
  const MatmulShape shape{args.c.rows, args.c.columns,
                          args.transpose_a ? args.a.rows : args.a.columns};
  check_storage(args.a, "matmul a");
  check_type(args.b, args.a.type, "matmul b");
  check_type_or_f32(args.c, args.a.type, "matmul c");
  if (args.transpose_a)
    check_matrix(args.a, shape.k, shape.m, "matmul a, transposed");
  else
    check_matrix(args.a, shape.m, shape.k, "matmul a");
  if (args.transpose_b)
    check_matrix(args.b, shape.n, shape.k, "matmul b, transposed");
  else
    check_matrix(args.b, shape.k, shape.n, "matmul b");
  check_matrix(args.c, shape.m, shape.n, "matmul c");
  if (args.bias.data != nullptr) {
    check_vector(args.bias, shape.n, "matmul bias");
    check_type(args.bias, args.a.type, "matmul bias");
  }
  if (args.addend.data != nullptr) {
    UK_CHECK(!args.accumulate, "matmul: either c or an addend is added");
    check_matrix(args.addend, shape.m, shape.n, "matmul addend");
    check_type(args.addend, args.c.type, "matmul addend");
  }
  return shape;
}

void check_shapes(const ColumnSumArgs& args) {
  check_storage(args.x, "column_sum x");
  check_vector(args.sum, args.x.columns, "column_sum sum");
  check_type_or_f32(args.sum, args.x.type, "column_sum sum");
}

void check_shapes(const EmbeddingForwardArgs& args, TokenValues tokens) {
  check_storage(args.weight, "embedding weight");
  check_storage(args.out, "embedding out");
  check_vector(args.tokens, args.out.rows, "embedding tokens");
  check_type(args.tokens, DType::i32, "embedding tokens");
  check_matrix(args.out, args.out.rows, args.weight.columns, "embedding out");
  if (tokens == TokenValues::here)
    check_tokens(args.tokens, args.weight.rows, false, "embedding tokens");
}

void check_shapes(const EmbeddingBackwardArgs& args, TokenValues tokens) {
  check_storage(args.dout, "embedding dout");
  check_type(args.dweight, DType::f32, "embedding dweight");
  check_vector(args.tokens, args.dout.rows, "embedding tokens");
  check_type(args.tokens, DType::i32, "embedding tokens");
  check_matrix(args.dout, args.dout.rows, args.dweight.columns, "embedding dout");
  if (tokens == TokenValues::here)
    check_tokens(args.tokens, args.dweight.rows, false, "embedding tokens");
}

std::int64_t check_shapes(const RmsNormForwardArgs& args) {
  check_storage(args.x, "rms_norm x");
  check_type(args.y, args.x.type, "rms_norm y");
  const std::int64_t width = check_norm(args);
  check_matrix(args.y, args.x.rows, args.x.columns, "rms_norm y");
  return width;
}

std::int64_t check_shapes(const RmsNormBackwardArgs& args) {
  check_storage(args.x, "rms_norm x");
  check_type(args.dy, args.x.type, "rms_norm dy");
  check_type(args.dx, args.x.type, "rms_norm dx");
  check_type_or_f32(args.dweight, args.x.type, "rms_norm dweight");
  const std::int64_t width = check_norm(args);
  check_matrix(args.dy, args.x.rows, args.x.columns, "rms_norm dy");
  check_matrix(args.dx, args.x.rows, args.x.columns, "rms_norm dx");
  check_vector(args.dweight, width, "rms_norm dweight");
  if (args.y.data != nullptr) {
    check_type(args.y, args.x.type, "rms_norm y");
    check_matrix(args.y, args.x.rows, args.x.columns, "rms_norm y");
  }
  const std::int64_t needed = rms_norm_backward_scratch_bytes(args.x.rows, width);
  UK_CHECK(
      bytes_of(args.scratch.type, args.scratch.element_count()) >= needed,
      fmt::format("rms_norm scratch: {} where {} bytes are needed", text_of(args.scratch), needed));
  return width;
}

void check_shapes(const RopeTableArgs& args) {
  check_vector(args.positions, args.cosine.rows, "rope positions");
  check_type(args.positions, DType::i32, "rope positions");
  check_type(args.cosine, DType::f32, "rope cosine");
  check_type(args.sine, DType::f32, "rope sine");
  check_matrix(args.sine, args.cosine.rows, args.cosine.columns, "rope sine");
}

void check_shapes(const RopeApplyArgs& args) {
  check_storage(args.x, "rope x");
  check_type(args.cosine, DType::f32, "rope cosine");
  check_type(args.sine, DType::f32, "rope sine");
  UK_CHECK(args.head_width > 0 && args.head_width % 2 == 0 && args.x.columns % args.head_width == 0,
           fmt::format("rope: head width {} of {} columns", args.head_width, args.x.columns));
  check_matrix(args.cosine, args.x.rows, args.head_width / 2, "rope cosine");
  check_matrix(args.sine, args.x.rows, args.head_width / 2, "rope sine");
}

AttentionShape check_shapes(const AttentionForwardArgs& args) {
  return check_attention(args);
}

AttentionShape check_shapes(const AttentionCachedArgs& args) {
  const AttentionShape shape{.rows = args.q.rows,
                             .query_heads = args.query_heads,
                             .key_heads = args.key_heads,
                             .head_width = args.head_width};
  UK_CHECK(shape.key_heads > 0 && shape.query_heads % shape.key_heads == 0,
           fmt::format("attention: {} query heads over {} key heads", shape.query_heads,
                       shape.key_heads));
  check_storage(args.q, "attention q");
  check_matrix(args.q, shape.rows, shape.query_heads * shape.head_width, "attention q");
  check_matrix(args.out, shape.rows, args.q.columns, "attention out");
  const std::int64_t key_columns = shape.key_heads * shape.head_width;
  check_matrix(args.k, shape.rows, key_columns, "attention k");
  check_matrix(args.v, shape.rows, key_columns, "attention v");
  check_matrix(args.keys, args.keys.rows, key_columns, "attention keys");
  check_matrix(args.values, args.keys.rows, key_columns, "attention values");
  for (const TensorView& view : {args.k, args.v, args.keys, args.values, args.out})
    check_type(view, args.q.type, "attention operand");
  check_vector(args.positions, shape.rows, "attention positions");
  check_type(args.positions, DType::i32, "attention positions");
  if (shape.rows == 0) return shape;
  const std::int64_t held = args.positions.as<std::int32_t>()[0];
  UK_CHECK(held >= 0 && held + shape.rows <= args.keys.rows,
           fmt::format("attention: rows {} to {} of a cache of {}", held, held + shape.rows,
                       args.keys.rows));
  return shape;
}

AttentionShape check_shapes(const AttentionBackwardArgs& args) {
  const AttentionShape shape = check_attention(args);
  check_matrix(args.dout, shape.rows, args.q.columns, "attention dout");
  check_matrix(args.dq, shape.rows, args.q.columns, "attention dq");
  check_matrix(args.dk, shape.rows, args.k.columns, "attention dk");
  check_matrix(args.dv, shape.rows, args.k.columns, "attention dv");
  check_type(args.dout, args.q.type, "attention dout");
  check_type(args.dq, args.q.type, "attention dq");
  check_type(args.dk, args.q.type, "attention dk");
  check_type(args.dv, args.q.type, "attention dv");
  if (args.cosine.data != nullptr)
    for (const TensorView& x : {args.dq, args.dk})
      check_shapes(RopeApplyArgs{
          .x = x, .cosine = args.cosine, .sine = args.sine, .head_width = args.head_width});
  const std::int64_t needed = attention_backward_scratch_bytes(shape.rows, shape.query_heads,
                                                               shape.key_heads, shape.head_width);
  UK_CHECK(bytes_of(args.scratch.type, args.scratch.element_count()) >= needed,
           fmt::format("attention scratch: {} where {} bytes are needed", text_of(args.scratch),
                       needed));
  return shape;
}

void check_shapes(const SwigluForwardArgs& args) {
  check_storage(args.gate, "swiglu gate");
  check_type(args.up, args.gate.type, "swiglu up");
  check_type(args.out, args.gate.type, "swiglu out");
  check_matrix(args.up, args.gate.rows, args.gate.columns, "swiglu up");
  check_matrix(args.out, args.gate.rows, args.gate.columns, "swiglu out");
}

void check_shapes(const SwigluBackwardArgs& args) {
  check_storage(args.gate, "swiglu gate");
  for (const TensorView& view : {args.up, args.dout, args.dgate, args.dup}) {
    check_type(view, args.gate.type, "swiglu up, dout, dgate or dup");
    check_matrix(view, args.gate.rows, args.gate.columns, "swiglu up, dout, dgate or dup");
  }
  if (args.out.data == nullptr) return;
  check_type(args.out, args.gate.type, "swiglu out");
  check_matrix(args.out, args.gate.rows, args.gate.columns, "swiglu out");
}

void check_shapes(const CrossEntropyArgs& args, TokenValues tokens) {
  check_storage(args.logits, "cross_entropy logits");
  check_vector(args.targets, args.logits.rows, "cross_entropy targets");
  check_type(args.targets, DType::i32, "cross_entropy targets");
  if (tokens == TokenValues::here)
    check_tokens(args.targets, args.logits.columns, true, "cross_entropy targets");
  check_vector(args.loss, 1, "cross_entropy loss");
  check_type(args.loss, DType::f64, "cross_entropy loss");
  if (args.with_gradient) {
    check_vector(args.gradient_scale, 1, "cross_entropy gradient_scale");
    check_type(args.gradient_scale, DType::f32, "cross_entropy gradient_scale");
  }
}

void check_shapes(const CopyArgs& args) {
  check_storage(args.from, "copy from");
  check_storage(args.to, "copy to");
  check_matrix(args.to, args.from.rows, args.from.columns, "copy to");
}

void check_shapes(const AddArgs& args) {
  check_storage(args.from, "add from");
  check_storage(args.into, "add into");
  check_matrix(args.into, args.from.rows, args.from.columns, "add into");
}

void check_shapes(const FillArgs& args) {
  UK_CHECK(
      is_storage_type(args.to.type) || args.to.type == DType::f64 || args.to.type == DType::i32,
      fmt::format("fill to: {}", text_of(args.to)));
}

void check_shapes(const SumSquaresArgs& args) {
  check_storage(args.x, "sum_squares x");
  UK_CHECK(args.x.rows <= 1, fmt::format("sum_squares x: {}, not one row", text_of(args.x)));
  check_vector(args.sum, 1, "sum_squares sum");
  check_type(args.sum, DType::f64, "sum_squares sum");
}

void check_shapes(const ClipFactorArgs& args) {
  check_vector(args.sums, args.sums.element_count(), "clip_factor sums");
  check_type(args.sums, DType::f64, "clip_factor sums");
  check_vector(args.out, 4, "clip_factor out");
  check_type(args.out, DType::f32, "clip_factor out");
  if (args.loss_scale.data == nullptr) return;
  check_vector(args.loss_scale, 1, "clip_factor loss_scale");
  check_type(args.loss_scale, DType::f32, "clip_factor loss_scale");
}

void check_shapes(const AdamwArgs& args) {
  const std::int64_t elements = args.master.element_count();
  check_vector(args.master, elements, "adamw master");
  check_vector(args.moment1, elements, "adamw moment1");
  check_vector(args.moment2, elements, "adamw moment2");
  check_vector(args.gradient, elements, "adamw gradient");
  check_type(args.master, DType::f32, "adamw master");
  check_type(args.moment1, DType::f32, "adamw moment1");
  check_type(args.moment2, DType::f32, "adamw moment2");
  check_storage(args.gradient, "adamw gradient");
  if (args.weight.data != nullptr) {
    check_vector(args.weight, elements, "adamw weight");
    check_storage(args.weight, "adamw weight");
  }
  check_vector(args.step_values, 4, "adamw step_values");
  check_type(args.step_values, DType::f32, "adamw step_values");
  check_vector(args.clip, 4, "adamw clip");
  check_type(args.clip, DType::f32, "adamw clip");
}

void check_shapes(const AdamwAtRandomArgs& args) {
  const std::int64_t elements = args.weight.element_count();
  check_vector(args.weight, elements, "adamw_at_random weight");
  check_vector(args.moment1, elements, "adamw_at_random moment1");
  check_vector(args.moment2, elements, "adamw_at_random moment2");
  check_vector(args.gradient, elements, "adamw_at_random gradient");
  check_type(args.weight, DType::bf16, "adamw_at_random weight");
  check_type(args.moment1, DType::bf16, "adamw_at_random moment1");
  check_type(args.moment2, DType::bf16, "adamw_at_random moment2");
  check_storage(args.gradient, "adamw_at_random gradient");
  check_vector(args.step_values, 4, "adamw_at_random step_values");
  check_type(args.step_values, DType::f32, "adamw_at_random step_values");
  check_vector(args.clip, 4, "adamw_at_random clip");
  check_type(args.clip, DType::f32, "adamw_at_random clip");
  UK_CHECK(args.first_element % elements_of_rounding_block == 0,
           "adamw_at_random begins inside a block of random bits");
}

}  // namespace underkeel::kernels
