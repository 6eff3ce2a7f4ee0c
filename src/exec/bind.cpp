#include "exec/bind.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace underkeel::exec {

std::byte* Context::data(plan::BufferId id) const {
  return (*arenas)[index(buffer(id).space)].data() + plan->layout.offset_bytes[index(id)];
}

TensorView Context::view(const plan::Operand& operand) const {
  if (operand.buffer == plan::no_buffer) return {};
  std::int64_t begin = 0;
  std::int64_t count = operand.rows.count;
  if (operand.rows.of_batch) {
    begin = std::min(operand.rows.begin, class_rows);
    count =
        std::min(operand.rows.begin + operand.rows.count, class_rows) - begin + operand.rows.extra;
    if (operand.rows.last_only) {
      begin = std::max<std::int64_t>(rows - 1, 0);
      count = std::min<std::int64_t>(rows, 1);
    }
  }
  return {.data = data(operand.buffer) + operand.offset_bytes +
                  bytes_of(operand.type, begin * operand.row_stride),
          .type = operand.type,
          .rows = count,
          .columns = operand.columns,
          .row_stride = operand.row_stride};
}

TensorView Context::elements(plan::BufferId id, std::int64_t begin, std::int64_t count) const {
  const DType type = buffer(id).type;
  UK_CHECK(bytes_of(type, begin + count) <= buffer(id).size_bytes,
           fmt::format("elements {}-{} of {}", begin, begin + count, buffer(id).name));
  return vector(data(id) + bytes_of(type, begin), type, count);
}

ShardRange Context::own_shard(const plan::Unit& unit) const {
  return shard_of(unit.element_count, plan->world_size, collectives->rank());
}

std::int64_t class_of(const plan::Schedule& schedule, const plan::Segment& segment,
                      std::int64_t rows) {
  if (segment.max_rows == 0) return 0;  // it computes on no batch
  UK_CHECK(rows <= segment.max_rows,
           fmt::format("a micro-batch of {} rows: segment {} is planned for {} at most", rows,
                       plan::name_of(segment.kind), segment.max_rows));
  if (rows == 0) return 0;
  for (const std::int64_t class_rows : schedule.shape_classes)
    if (class_rows >= rows) return std::min(class_rows, segment.max_rows);
  UK_CHECK(false, fmt::format("{} rows are beyond the largest shape class", rows));
  return 0;
}

}  // namespace underkeel::exec
