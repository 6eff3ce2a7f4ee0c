#include "exec/guard.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace underkeel::exec {

namespace {

// Not a number in f32, bf16 and f16, and no token, row or position as an integer.
constexpr std::uint8_t guard_value = 0xff;

Result<void> fill(const Context& context, const Arena& arena, std::byte* begin,
                  std::int64_t size_bytes, device::Queue& queue) {
  if (arena.is_on_gpu()) return context.gpu->fill(begin, size_bytes, guard_value, queue);
  std::memset(begin, guard_value, static_cast<std::size_t>(size_bytes));
  return {};
}

/// Bytes of host or device memory, once all that is queued has ended.
Result<void> take(const Context& context, const Arena& arena, const std::byte* begin,
                  std::vector<std::byte>& into, device::Queue& queue) {
  const auto size_bytes = static_cast<std::int64_t>(into.size());
  if (arena.is_on_gpu()) {
    UK_TRY_VOID(context.gpu->copy(into.data(), begin, size_bytes, queue));
    return context.gpu->synchronize(queue);
  }
  std::memcpy(into.data(), begin, into.size());
  return {};
}

}  // namespace

Result<void> fill_guarded(const Context& context, device::Queue& queue) {
  for (const Arena& arena : *context.arenas)
    if (arena.size_bytes() > 0)
      UK_TRY_VOID(fill(context, arena, arena.data(), arena.size_bytes(), queue));
  return context.gpu != nullptr ? context.gpu->synchronize(queue) : Result<void>{};
}

Result<void> fill_guarded(const Context& context, plan::BufferId id, device::Queue& queue) {
  const plan::Buffer& buffer = context.buffer(id);
  return fill(context, (*context.arenas)[index(buffer.space)], context.data(id), buffer.size_bytes,
              queue);
}

Result<void> check_guards(const Context& context, device::Queue& queue) {
  const plan::Schedule& schedule = context.plan->schedule;
  std::vector<std::byte> room(static_cast<std::size_t>(context.plan->layout.guard_bytes));
  std::string first;
  std::int64_t written = 0;
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const plan::BufferId id{static_cast<std::uint32_t>(i)};
    const plan::Buffer& buffer = context.buffer(id);
    UK_TRY_VOID(take(context, (*context.arenas)[index(buffer.space)],
                     context.data(id) + buffer.size_bytes, room, queue));
    if (std::all_of(room.begin(), room.end(),
                    [](std::byte byte) { return byte == std::byte{guard_value}; }))
      continue;
    if (written++ == 0) first = buffer.name;
  }
  if (written == 0) return {};
  return fail(ErrorCode::io,
              fmt::format("something wrote behind {} of {} buffers, first behind `{}`", written,
                          schedule.buffers.size(), first),
              "underkeel.guard", "report this, it is a bug");
}

}  // namespace underkeel::exec
