// Lowers the head and the loss in chunks of rows: whole logits never exist, in training or evaluation.
// Needs: a lowered forward pass. Gives: logits of a chunk, its loss, and (training) the chunk's part
// of d(hidden) and of the head's gradient, before the next chunk's logits take the same bytes.

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "kernels/facts/facts.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::Access;
using plan::BufferKind;
using plan::Compute;
using plan::Kernel;
using plan::Operand;

std::string head_weight(const spec::ModelSpec& model) {
  return model.tied_head ? "model.embed_tokens.weight" : "lm_head.weight";
}

Operand rows_slice(Operand operand, std::int64_t begin, std::int64_t count) {
  operand.rows.begin = begin;
  operand.rows.count = count;
  return operand;
}

/// Rows of a chunk buffer: as many as the batch has in [begin, begin + count), from its first row.
Operand chunk_rows(BufferId buffer, Access access, DType type, std::int64_t begin,
                   std::int64_t count, std::int64_t columns) {
  Operand operand = batch_rows(buffer, access, type, count, columns);
  operand.rows.begin = begin;
  // Row `begin` of the batch is row 0 of the buffer.
  operand.offset_bytes = -bytes_of(type, begin * columns);
  return operand;
}

}  // namespace

std::int64_t loss_chunk_rows(const Request& request, std::int64_t rows) {
  constexpr std::int64_t most_chunks = 512;
  constexpr std::int64_t granule_rows = 16;
  const std::int64_t chunk = request.on_gpu ? kernels::cuda_loss_chunk_rows
                                            : kernels::loss_chunk_rows(request.model.vocabulary);
  return std::min(rows, std::max(chunk, round_up(ceil_div(rows, most_chunks), granule_rows)));
}

BufferId lower_loss(Builder& builder, const Forward& forward, bool with_gradient, BufferId totals,
                    const std::string& prefix, std::vector<Op>& ops) {
  const spec::ModelSpec& model = builder.request.model;
  const DType type = builder.type();
  const std::int64_t rows = forward.max_rows;
  const bool on_gpu = builder.request.on_gpu;
  const std::int64_t chunk = loss_chunk_rows(builder.request, rows);
  const auto chunk_buffer = [&](std::string name, DType buffer_type) {
    return builder.add_buffer({.name = prefix + std::move(name),
                               .kind = BufferKind::workspace,
                               .type = buffer_type,
                               .size_bytes = bytes_of(buffer_type, chunk * model.vocabulary)});
  };
  // The products of the backward pass read the storage type; on a GPU the gradient takes the logits' place.
  const DType logits_type = on_gpu ? type : DType::f32;
  const BufferId logits = chunk_buffer("head.logits", logits_type);
  const bool narrow = type != logits_type;
  const BufferId gradient_logits =
      with_gradient && narrow ? chunk_buffer("head.dlogits", type) : logits;
  const BufferId hidden_gradient =
      with_gradient ? builder.add_rows_buffer(prefix + "d.final_norm", BufferKind::activations,
                                              type, rows, model.width)
                    : plan::no_buffer;
  const Operand weight = builder.weight(head_weight(model));
  const auto emit = [&](Compute body, std::string_view what, std::int64_t number) {
    ops.push_back(compute(std::move(body), fmt::format("loss chunk {} {}", number, what)));
  };
  for (std::int64_t begin = 0, number = 0; begin < rows; begin += chunk, ++number) {
    const std::int64_t count = std::min(chunk, rows - begin);
    const Operand hidden =
        rows_slice(batch_rows(forward.hidden, Access::read, type, rows, model.width), begin, count);
    const auto logits_rows = [&](Access access, BufferId buffer, DType buffer_type) {
      return chunk_rows(buffer, access, buffer_type, begin, count, model.vocabulary);
    };
    emit({.kernel = Kernel::matmul,
          .operands = {hidden, weight, logits_rows(Access::write, logits, logits_type)},
          .transpose_b = true},
         "logits", number);
    emit({.kernel = Kernel::cross_entropy,
          .operands = {logits_rows(Access::read_write, logits, logits_type),
                       rows_slice(batch_rows(forward.targets, Access::read, DType::i32, rows, 1),
                                  begin, count),
                       fixed(totals, Access::read_write, DType::f64, 1, 1),
                       fixed(forward.gradient_scale, Access::read, DType::f32, 1, 1)},
          .with_gradient = with_gradient},
         "cross entropy", number);
    if (!with_gradient) continue;
    if (narrow)
      emit({.kernel = Kernel::copy,
            .operands = {logits_rows(Access::read, logits, logits_type),
                         logits_rows(Access::write, gradient_logits, type)}},
           "narrow", number);
    emit({.kernel = Kernel::matmul,
          .operands = {logits_rows(Access::read, gradient_logits, type), weight,
                       rows_slice(
                           batch_rows(hidden_gradient, Access::write, type, rows, model.width),
                           begin, count)}},
         "d hidden", number);
    emit({.kernel = Kernel::matmul,
          .operands = {logits_rows(Access::read, gradient_logits, type), hidden,
                       builder.weight_gradient(head_weight(model),
                                               number == 0 ? Access::write : Access::read_write)},
          .transpose_a = true,
          .accumulate = number > 0},
         "d head", number);
  }
  return hidden_gradient;
}

void lower_last_logits(Builder& builder, const Forward& forward, BufferId logits,
                       std::vector<Op>& ops) {
  const spec::ModelSpec& model = builder.request.model;
  Operand hidden =
      batch_rows(forward.hidden, Access::read, builder.type(), forward.max_rows, model.width);
  hidden.rows.last_only = true;
  ops.push_back(
      compute({.kernel = Kernel::matmul,
               .operands = {hidden, builder.weight(head_weight(model)),
                            fixed(logits, Access::write, DType::f32, 1, model.vocabulary)},
               .transpose_b = true},
              "last logits"));
  Op publish;
  publish.body = plan::Publish{.output = plan::Output::logits, .from = logits};
  publish.label = "publish logits";
  ops.push_back(std::move(publish));
}

}  // namespace underkeel::planner
