// Runs one operation on this rank. Which ranges of a unit an operation touches follows from the homes that
// the plan gave it; nothing is chosen here.

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "exec/bind.h"
#include "exec/compute.h"
#include "plan/uses.h"

namespace underkeel::exec {

namespace {

/// The elements of `unit` that its `home` holds on this rank, viewed in `home`.
struct Held {
  ShardRange range;        // in the unit
  std::int64_t first = 0;  // element of the buffer where `range` begins
};

Held own_part(const Context& context, const plan::Unit& unit, bool sharded_home) {
  const ShardRange own = context.own_shard(unit);
  return {own, sharded_home ? 0 : own.begin};
}

TensorView part(const Context& context, plan::BufferId buffer, const Held& held) {
  return context.elements(buffer, held.first, held.range.size());
}

class Runner {
 public:
  Runner(const Context& context, const plan::Op& op, device::Queue& queue)
      : c_(context), op_(op), queue_(queue) {}

  Result<void> operator()(const plan::Acquire&) const { return {}; }
  Result<void> operator()(const plan::Release&) const { return {}; }

  // One rank on a GPU has nothing to add, and what is exchanged is copied.
  Result<void> operator()(const plan::Gather& body) const {
    if (is_alone_on_gpu()) return copy_own(body.shard, body.full);
    const plan::Unit& unit = c_.plan->schedule.unit(body.unit);
    const TensorView full = c_.elements(body.full, 0, unit.element_count);
    const Held held = own_part(c_, unit, body.shard != body.full);
    const TensorView shard = part(c_, body.shard, held);
    return c_.gpu != nullptr ? c_.device_collectives->all_gather(shard, full, queue_)
                             : c_.collectives->all_gather(shard, full);
  }
  Result<void> operator()(const plan::ReduceScatter& body) const {
    if (is_alone_on_gpu()) return {};
    const TensorView full = unit_view(body.unit, body.full);
    const TensorView staging = whole(body.staging);
    if (c_.gpu == nullptr) {
      UK_CHECK(body.into == plan::no_buffer, "on the CPU an operation of its own adds");
      return c_.collectives->reduce_scatter(full, staging);
    }
    comm::SumHome home;
    if (body.into != plan::no_buffer) {
      const plan::Unit& unit = c_.plan->schedule.unit(body.unit);
      home = {.into = part(c_, body.into, own_part(c_, unit, unit.gradient_sharded)),
              .adds = !body.first};
    }
    return c_.device_collectives->reduce_scatter(full, staging, home, queue_);
  }
  Result<void> operator()(const plan::AllReduce& body) const {
    if (is_alone_on_gpu()) return {};
    const TensorView full = unit_view(body.unit, body.full);
    const TensorView staging = whole(body.staging);
    return c_.gpu != nullptr ? c_.device_collectives->all_reduce(full, staging, queue_)
                             : c_.collectives->all_reduce(full, staging);
  }
  Result<void> operator()(const plan::GatherValues& body) const {
    if (is_alone_on_gpu()) return copy_own(body.own, body.all);
    if (c_.gpu != nullptr)
      return c_.device_collectives->all_gather_values(
          reinterpret_cast<const double*>(c_.data(body.own)),
          reinterpret_cast<double*>(c_.data(body.all)), body.count, queue_);
    const auto count = static_cast<std::size_t>(body.count);
    return c_.collectives->all_gather_values(
        std::span(reinterpret_cast<const double*>(c_.data(body.own)), count),
        std::span(reinterpret_cast<double*>(c_.data(body.all)),
                  count * static_cast<std::size_t>(c_.plan->world_size)));
  }
  Result<void> operator()(const plan::Compute& body) const {
    run_compute(c_, body, queue_);
    const auto& distortion = c_.inputs->distortion;
    if (distortion && op_.layer == distortion->layer &&
        op_.label == fmt::format("layers.{} down", op_.layer))
      for (int i = 0; i < distortion->doublings; ++i) {
        const TensorView out = c_.view(body.operands[2]);
        c_.kernels->add({.from = out, .into = out}, queue_);
      }
    return {};
  }

  Result<void> operator()(const plan::Accumulate& body) const {
    const plan::Unit& unit = c_.plan->schedule.unit(body.unit);
    const ShardRange range = body.whole ? ShardRange{0, unit.element_count} : c_.own_shard(unit);
    const TensorView from = c_.elements(body.from, range.begin, range.size());
    const TensorView into =
        c_.elements(body.into, unit.gradient_sharded ? 0 : range.begin, range.size());
    if (body.first) {
      c_.kernels->copy({.from = from, .to = into}, queue_);
    } else {
      c_.kernels->add({.from = from, .into = into}, queue_);
    }
    return {};
  }
  Result<void> operator()(const plan::SumSquares& body) const {
    const plan::Unit& unit = c_.plan->schedule.unit(body.unit);
    c_.kernels->sum_squares(
        {.x = part(c_, body.gradient, own_part(c_, unit, unit.gradient_sharded)),
         .sum = c_.elements(body.sums, body.slot, 1),
         .scratch = whole(body.scratch)},
        queue_);
    return {};
  }
  Result<void> operator()(const plan::Update& body) const {
    const plan::Unit& unit = c_.plan->schedule.unit(body.unit);
    const ShardRange range =
        unit.optimizer_sharded ? c_.own_shard(unit) : ShardRange{0, unit.element_count};
    const auto held = [&](plan::BufferId id, bool sharded) {
      return id == plan::no_buffer ? TensorView{}
                                   : c_.elements(id, sharded ? 0 : range.begin, range.size());
    };
    const TensorView weights = held(unit.weights, unit.weights_sharded);
    if (body.rounds_at_random) {
      c_.kernels->adamw_at_random({.weight = weights,
                                   .moment1 = held(unit.moment1, unit.optimizer_sharded),
                                   .moment2 = held(unit.moment2, unit.optimizer_sharded),
                                   .gradient = held(body.gradient, unit.gradient_sharded),
                                   .step_values = whole(body.step_values),
                                   .clip = whole(body.clip),
                                   .beta1 = body.beta1,
                                   .beta2 = body.beta2,
                                   .epsilon = body.epsilon,
                                   .weight_decay = body.weight_decay,
                                   .seed = body.seed,
                                   .stream = static_cast<std::uint32_t>(index(body.unit)),
                                   .first_element = range.begin},
                                  queue_);
      return {};
    }
    const bool has_master = unit.master != plan::no_buffer;
    c_.kernels->adamw({.master = has_master ? held(unit.master, unit.optimizer_sharded) : weights,
                       .moment1 = held(unit.moment1, unit.optimizer_sharded),
                       .moment2 = held(unit.moment2, unit.optimizer_sharded),
                       .gradient = held(body.gradient, unit.gradient_sharded),
                       .weight = has_master ? weights : TensorView{},
                       .step_values = whole(body.step_values),
                       .clip = whole(body.clip),
                       .beta1 = body.beta1,
                       .beta2 = body.beta2,
                       .epsilon = body.epsilon,
                       .weight_decay = body.weight_decay},
                      queue_);
    return {};
  }

  Result<void> operator()(const plan::Feed& body) const {
    const Inputs& in = *c_.inputs;
    switch (body.input) {
      case plan::Input::tokens:
        return feed_rows(body, in.tokens, 0);
      case plan::Input::targets:
        return feed_rows(body, in.targets, kernels::ignore_target);
      case plan::Input::positions:
        return feed_rows(body, in.positions, 0);
      case plan::Input::sequence_starts:
        return feed_starts(body);
      case plan::Input::gradient_scale:
        return feed_bytes(body, 0, &in.gradient_scale, 4);
      case plan::Input::step_values:
        return feed_bytes(body, 0, in.step_values.data(), sizeof in.step_values);
      case plan::Input::loss_scale:
        return feed_bytes(body, 0, &in.loss_scale, 4);
      case plan::Input::control:
        return feed_bytes(body, 8 * plan::total_control, &in.control, 8);
    }
    return {};
  }
  Result<void> operator()(const plan::Publish& body) const {
    TensorView from = whole(body.from);
    if (c_.gpu != nullptr) {
      const std::int64_t size_bytes = c_.buffer(body.from).size_bytes;
      UK_TRY_VOID(c_.gpu->copy(c_.data(body.pinned), from.data, size_bytes, queue_));
      UK_TRY_VOID(c_.gpu->synchronize(queue_));
      from.data = c_.data(body.pinned);
    }
    switch (body.output) {
      case plan::Output::totals:
        c_.outputs->totals.assign(from.as<double>(), from.as<double>() + from.columns);
        break;
      case plan::Output::clip:
        std::memcpy(c_.outputs->clip.data(), from.data, 16);
        break;
      case plan::Output::logits:
        c_.outputs->logits.assign(from.as<float>(), from.as<float>() + from.columns);
        break;
    }
    return {};
  }

  Result<void> operator()(const plan::CopyOut& body) const {
    const Held held = piece_of(body.piece, body.state);
    if (held.range.empty()) return {};
    const TensorView from = part(c_, body.state, held);
    const std::int64_t size_bytes = bytes_of(from.type, from.columns);
    if (c_.gpu != nullptr)
      return c_.gpu->copy(c_.data(body.staging), from.data, size_bytes, queue_);
    std::memcpy(c_.data(body.staging), from.data, static_cast<std::size_t>(size_bytes));
    return {};
  }
  Result<void> operator()(const plan::Save& body) const {
    const plan::Unit& unit = c_.plan->schedule.unit(body.piece.unit);
    const DType type = part_type(unit, body.piece.part);
    return for_each_tensor(body.piece, [&](const plan::UnitTensor& tensor, ShardRange in_tensor,
                                           std::int64_t in_piece) {
      return c_.sink->write(tensor, body.piece.part, in_tensor.begin, in_tensor.end, type,
                            c_.data(body.staging) + bytes_of(type, in_piece));
    });
  }
  Result<void> operator()(const plan::Load& body) const {
    const DType type = staged_type(body.piece, body.state);
    return for_each_tensor(body.piece, [&](const plan::UnitTensor& tensor, ShardRange in_tensor,
                                           std::int64_t in_piece) {
      std::byte* const into = c_.data(body.staging) + bytes_of(type, in_piece);
      return type == DType::f32 ? c_.source->read(tensor, body.piece.part, in_tensor.begin,
                                                  in_tensor.end, reinterpret_cast<float*>(into))
                                : c_.source->read_held(tensor, body.piece.part, in_tensor.begin,
                                                       in_tensor.end, into);
    });
  }
  Result<void> operator()(const plan::CopyIn& body) const {
    const Held held = piece_of(body.piece, body.state);
    if (held.range.empty()) return {};
    const TensorView to = part(c_, body.state, held);
    if (body.twin == plan::no_buffer) {
      const DType type = staged_type(body.piece, body.state);
      return copy_in(vector(c_.data(body.staging), type, held.range.size()), to);
    }
    plan::StatePiece first = body.piece;
    first.part = body.piece.part == plan::StatePart::master ? plan::StatePart::weights
                                                            : plan::StatePart::master;
    if (staged_type(first, body.twin) == c_.buffer(body.twin).type)
      return copy_in(part(c_, body.twin, piece_of(first, body.twin)), to);
    return copy_in(vector(c_.data(body.staging), DType::f32, held.range.size()), to);
  }

 private:
  bool is_alone_on_gpu() const { return c_.gpu != nullptr && c_.plan->world_size == 1; }
  TensorView whole(plan::BufferId id) const {
    if (id == plan::no_buffer) return {};
    const plan::Buffer& buffer = c_.buffer(id);
    return c_.elements(id, 0, buffer.size_bytes * 8 / bits_of(buffer.type));
  }
  TensorView unit_view(plan::UnitId unit, plan::BufferId buffer) const {
    return c_.elements(buffer, 0, c_.plan->schedule.unit(unit).element_count);
  }

  static bool is_sharded(const plan::Unit& unit, plan::StatePart part) {
    return part == plan::StatePart::weights ? unit.weights_sharded : unit.optimizer_sharded;
  }
  DType part_type(const plan::Unit& unit, plan::StatePart part) const {
    switch (part) {
      case plan::StatePart::weights:
        return c_.buffer(unit.weights).type;
      case plan::StatePart::master:
        return c_.buffer(unit.master).type;
      case plan::StatePart::moment1:
        return c_.buffer(unit.moment1).type;
      case plan::StatePart::moment2:
        return c_.buffer(unit.moment2).type;
    }
    return DType::f32;
  }
  ShardRange piece_range(const plan::StatePiece& piece) const {
    const ShardRange own = c_.own_shard(c_.plan->schedule.unit(piece.unit));
    return intersect({own.begin + piece.begin, own.begin + piece.end}, own);
  }
  Held piece_of(const plan::StatePiece& piece, plan::BufferId) const {
    const plan::Unit& unit = c_.plan->schedule.unit(piece.unit);
    const ShardRange range = piece_range(piece);
    const std::int64_t shift = is_sharded(unit, piece.part) ? c_.own_shard(unit).begin : 0;
    return {range, range.begin - shift};
  }

  // Calls visit(tensor, range inside the tensor, first element inside the piece) for every tensor that the
  // rank's part of the piece touches.
  template <class Visit>
  Result<void> for_each_tensor(const plan::StatePiece& piece, Visit&& visit) const {
    const ShardRange range = piece_range(piece);
    for (const plan::UnitTensor& tensor : c_.plan->schedule.unit(piece.unit).tensors) {
      const ShardRange both = intersect(range, {tensor.begin, tensor.begin + tensor.element_count});
      if (both.empty()) continue;
      UK_TRY_VOID(visit(tensor, ShardRange{both.begin - tensor.begin, both.end - tensor.begin},
                        both.begin - range.begin));
    }
    return {};
  }

  /// How a piece for `home` lies in staging: in the home's type if its source keeps all of it so, else in f32.
  DType staged_type(const plan::StatePiece& piece, plan::BufferId home) const {
    const DType type = c_.buffer(home).type;
    bool is_held = true;
    const auto look = [&](const plan::UnitTensor& tensor, ShardRange,
                          std::int64_t) -> Result<void> {
      is_held = is_held && c_.source->held_type(tensor, piece.part) == type;
      return {};
    };
    return for_each_tensor(piece, look) && is_held ? type : DType::f32;
  }
  Result<void> copy_in(TensorView from, TensorView to) const {
    if (c_.gpu != nullptr && from.type == to.type)
      return c_.gpu->copy(to.data, from.data, bytes_of(to.type, to.element_count()), queue_);
    c_.kernels->copy({.from = from, .to = to}, queue_);
    return {};
  }

  Result<void> copy_own(plan::BufferId from, plan::BufferId to) const {
    if (from == to) return {};
    return c_.gpu->copy(c_.data(to), c_.data(from), c_.buffer(from).size_bytes, queue_);
  }

  // Where the host writes an input, and the copy from there to where kernels read it.
  std::byte* begin_feed(const plan::Feed& body) const {
    return c_.data(c_.gpu != nullptr ? body.pinned : body.into);
  }
  Result<void> end_feed(const plan::Feed& body, std::int64_t offset_bytes,
                        std::int64_t size_bytes) const {
    if (c_.gpu == nullptr) return {};
    return c_.gpu->copy(c_.data(body.into) + offset_bytes, c_.data(body.pinned) + offset_bytes,
                        size_bytes, queue_);
  }

  // Rows past the batch, up to its shape class, hold token 0 without a target.
  Result<void> feed_rows(const plan::Feed& body, std::span<const std::int32_t> from,
                         std::int32_t rest) const {
    UK_CHECK(static_cast<std::int64_t>(from.size()) == c_.rows,
             fmt::format("{}: {} values for {} rows", op_.label, from.size(), c_.rows));
    auto* to = reinterpret_cast<std::int32_t*>(begin_feed(body));
    std::copy(from.begin(), from.end(), to);
    std::fill(to + c_.rows, to + c_.class_rows, rest);
    return end_feed(body, 0, bytes_of(DType::i32, c_.class_rows));
  }
  // Every row past the batch is a sequence of its own, so that it costs no attention.
  Result<void> feed_starts(const plan::Feed& body) const {
    const auto from = c_.inputs->sequence_starts;
    auto* to = reinterpret_cast<std::int32_t*>(begin_feed(body));
    UK_CHECK(!from.empty() && from.back() == c_.rows &&
                 static_cast<std::int64_t>(from.size()) <= c_.rows + 1,
             "sequence starts end with the number of rows");
    std::int64_t at = 0;
    for (const std::int32_t start : from) to[at++] = start;
    for (std::int64_t row = c_.rows + 1; row <= c_.class_rows; ++row)
      to[at++] = static_cast<std::int32_t>(row);
    while (at <= c_.class_rows) to[at++] = static_cast<std::int32_t>(c_.class_rows);
    return end_feed(body, 0, bytes_of(DType::i32, c_.class_rows + 1));
  }
  Result<void> feed_bytes(const plan::Feed& body, std::int64_t offset_bytes, const void* from,
                          std::size_t size_bytes) const {
    std::memcpy(begin_feed(body) + offset_bytes, from, size_bytes);
    return end_feed(body, offset_bytes, static_cast<std::int64_t>(size_bytes));
  }

  const Context& c_;
  const plan::Op& op_;
  device::Queue& queue_;
};

}  // namespace

Result<void> run_operation(const Context& context, const plan::Op& op, device::Queue& queue) {
  if (op.when != plan::no_buffer && *reinterpret_cast<const float*>(context.data(op.when)) == 0.0f)
    return {};
  if (!op.on.empty() &&
      std::find(op.on.begin(), op.on.end(), context.collectives->rank()) == op.on.end())
    return {};
  return std::visit(Runner(context, op, queue), op.body);
}

}  // namespace underkeel::exec
