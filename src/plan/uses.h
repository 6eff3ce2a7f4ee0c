#pragma once
// The one place that says which buffers an operation reads and writes.

#include "plan/schedule.h"

namespace underkeel::plan {

/// Calls visit(buffer, access) once for every buffer that `op` touches. `schedule` supplies the homes of units.
/// Acquire and Release touch nothing: they begin and end a buffer's life.
template <class Visit>
void for_each_use(const Schedule& schedule, const Op& op, Visit&& visit);

struct Use {
  BufferId buffer = no_buffer;
  Access access = Access::read;
};
std::vector<Use> uses(const Schedule& schedule, const Op& op);

constexpr bool reads(Access access) {
  return access != Access::write;
}
constexpr bool writes(Access access) {
  return access != Access::read;
}

/// The buffer whose life an operation begins (Acquire) or ends (Release), else no_buffer.
inline BufferId acquired_by(const Op& op) {
  const auto* acquire = std::get_if<Acquire>(&op.body);
  return acquire ? acquire->buffer : no_buffer;
}
inline BufferId released_by(const Op& op) {
  const auto* release = std::get_if<Release>(&op.body);
  return release ? release->buffer : no_buffer;
}

namespace detail {
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;
}  // namespace detail

template <class Visit>
void for_each_use(const Schedule& schedule, const Op& op, Visit&& visit) {
  const auto read = [&](BufferId id) {
    if (id != no_buffer) visit(id, Access::read);
  };
  const auto write = [&](BufferId id) {
    if (id != no_buffer) visit(id, Access::write);
  };
  const auto change = [&](BufferId id) {
    if (id != no_buffer) visit(id, Access::read_write);
  };
  if (op.when != no_buffer) read(op.when);
  std::visit(detail::Overload{
                 [](const Acquire&) {},
                 [](const Release&) {},
                 [&](const Gather& body) {
                   if (body.shard == body.full) return change(body.full);
                   read(body.shard);
                   write(body.full);
                 },
                 [&](const ReduceScatter& body) {
                   change(body.full);
                   write(body.staging);
                   if (body.first) {
                     write(body.into);
                   } else {
                     change(body.into);
                   }
                 },
                 [&](const AllReduce& body) {
                   change(body.full);
                   write(body.staging);
                 },
                 [&](const GatherValues& body) {
                   read(body.own);
                   write(body.all);
                 },
                 [&](const Compute& body) {
                   for (const Operand& operand : body.operands)
                     if (operand.buffer != no_buffer) visit(operand.buffer, operand.access);
                 },
                 [&](const Accumulate& body) {
                   read(body.from);
                   if (body.first) {
                     write(body.into);
                   } else {
                     change(body.into);
                   }
                 },
                 [&](const SumSquares& body) {
                   read(body.gradient);
                   change(body.sums);
                   write(body.scratch);
                 },
                 [&](const Update& body) {
                   const Unit& unit = schedule.unit(body.unit);
                   read(body.gradient);
                   read(body.step_values);
                   read(body.clip);
                   change(unit.moment1);
                   change(unit.moment2);
                   change(unit.master);
                   change(unit.weights);
                 },
                 [&](const Feed& body) {
                   write(body.into);
                   write(body.pinned);
                 },
                 [&](const Publish& body) {
                   read(body.from);
                   write(body.pinned);
                 },
                 [&](const CopyOut& body) {
                   read(body.state);
                   write(body.staging);
                 },
                 [&](const Save& body) { read(body.staging); },
                 [&](const Load& body) { write(body.staging); },
                 [&](const CopyIn& body) {
                   read(body.staging);
                   if (body.twin != no_buffer) read(body.twin);
                   change(body.state);
                 },
             },
             op.body);
}

inline std::vector<Use> uses(const Schedule& schedule, const Op& op) {
  std::vector<Use> found;
  for_each_use(schedule, op, [&](BufferId id, Access access) { found.push_back({id, access}); });
  return found;
}

}  // namespace underkeel::plan
