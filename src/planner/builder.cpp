#include "planner/builder.h"

#include "base/check.h"

namespace underkeel::planner {

BufferId Builder::add_buffer(plan::Buffer buffer) {
  schedule.buffers.push_back(std::move(buffer));
  return BufferId{static_cast<std::uint32_t>(schedule.buffers.size() - 1)};
}

BufferId Builder::add_rows_buffer(std::string name, plan::BufferKind kind, DType buffer_type,
                                  std::int64_t max_rows, std::int64_t columns) {
  return add_buffer({.name = std::move(name),
                     .kind = kind,
                     .type = buffer_type,
                     .size_bytes = bytes_of(buffer_type, max_rows * columns)});
}

namespace {
const Place& place_of(const Builder& builder, const std::string& parameter) {
  const auto found = builder.places.find(parameter);
  UK_CHECK(found != builder.places.end(), "no parameter " + parameter);
  return found->second;
}
}  // namespace

plan::Operand Builder::weight(const std::string& parameter) const {
  const Place& place = place_of(*this, parameter);
  return fixed(unit_buffers[index(place.unit)].full, plan::Access::read, type(), place.rows,
               place.columns, bytes_of(type(), place.begin));
}

plan::Operand Builder::weight_gradient(const std::string& parameter, plan::Access access) const {
  const Place& place = place_of(*this, parameter);
  const DType gradient_type = schedule.unit(place.unit).micro_gradient_type;
  return fixed(unit_buffers[index(place.unit)].micro_gradient, access, gradient_type, place.rows,
               place.columns, bytes_of(gradient_type, place.begin));
}

plan::Operand batch_rows(BufferId buffer, plan::Access access, DType type, std::int64_t max_rows,
                         std::int64_t columns, std::int64_t first_column, std::int64_t row_stride) {
  return {.buffer = buffer,
          .access = access,
          .type = type,
          .offset_bytes = bytes_of(type, first_column),
          .rows = {.of_batch = true, .begin = 0, .count = max_rows},
          .columns = columns,
          .row_stride = row_stride == 0 ? columns : row_stride};
}

plan::Operand fixed(BufferId buffer, plan::Access access, DType type, std::int64_t rows,
                    std::int64_t columns, std::int64_t offset_bytes) {
  return {.buffer = buffer,
          .access = access,
          .type = type,
          .offset_bytes = offset_bytes,
          .rows = {.count = rows},
          .columns = columns,
          .row_stride = columns};
}

Op compute(plan::Compute body, std::string label, std::int32_t layer) {
  Op op;
  op.body = std::move(body);
  op.label = std::move(label);
  op.layer = layer;
  return op;
}

}  // namespace underkeel::planner
