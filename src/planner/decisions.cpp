// Says what the planner chose where the run left it the choice, what the alternatives are, and in numbers what they
// would take. A run that names a value itself has decided: nothing is said.

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "kernels/facts/facts.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::Alternative;
using plan::Decision;

std::int64_t buffer_bytes(const plan::Schedule& schedule, std::string_view name) {
  std::int64_t size = 0;
  for (const plan::Buffer& buffer : schedule.buffers)
    if (buffer.name == name) size = std::max(size, buffer.size_bytes);
  return size;
}

Decision shape_classes(const plan::Schedule& schedule) {
  std::string rows;
  for (const std::int64_t one : schedule.shape_classes)
    rows += (rows.empty() ? "" : ", ") + format_count(one);
  return {
      .subject = "shape classes",
      .value = rows + " rows",
      .reason = "even parts of the largest batch, all in the same bytes: a short batch is cheap",
      .alternatives = {{"one class", fmt::format("every batch takes the time of {} rows",
                                                 format_count(schedule.shape_classes.back()))}}};
}

std::optional<Decision> loss_chunks(const Request& request) {
  const std::int64_t rows = std::max(request.max_rows, request.max_evaluation_rows);
  const std::int64_t vocabulary = request.model.vocabulary;
  const std::int64_t chunk = loss_chunk_rows(request, rows);
  if (chunk >= rows) return std::nullopt;
  const DType type = request.on_gpu ? request.weight_type : DType::f32;
  return Decision{.subject = "rows of logits at once",
                  .value = format_count(chunk),
                  .reason = fmt::format("{} of them; the same for every budget, so that bits are",
                                        format_bytes(bytes_of(type, chunk * vocabulary))),
                  .alternatives = {{"all " + format_count(rows),
                                    "needs " + format_bytes(bytes_of(type, rows * vocabulary))}}};
}

/// The choices of stage 3 about whole weights.
void gathers(const Request& request, const plan::Schedule& schedule,
             std::vector<Decision>& decisions) {
  std::int64_t largest = 0, sharded = 0, whole = 0, whole_elements = 0;
  for (const plan::Unit& unit : schedule.units) {
    const std::int64_t size = bytes_of(request.weight_type, unit.element_count);
    if (!unit.weights_sharded) {
      ++whole;
      whole_elements += size;
      continue;
    }
    sharded += size;
    if (unit.name.starts_with("layers.")) largest = std::max(largest, size);
  }
  if (sharded == 0) return;
  if (!request.bounds.prefetch_bucket_elements)
    decisions.push_back(
        {.subject = "gather ahead",
         .value = "one unit",
         .reason = "a second one hides nothing once a layer computes longer than it gathers",
         .alternatives = {{"none", fmt::format("up to {} less, and every gather is waited for",
                                               format_bytes(largest))},
                          {"two units", fmt::format("up to {} more", format_bytes(largest))}}});
  if (!request.bounds.max_reuse_distance_elements)
    decisions.push_back(
        {.subject = "gathered weights",
         .value = "let go after use",
         .reason = "each unit is gathered again for the backward pass",
         .alternatives = {
             {"kept", fmt::format("up to {} more, and no second gather", format_bytes(sharded))}}});
  if (!request.bounds.param_persistence_elements && whole > 0)
    decisions.push_back(
        {.subject = "kept whole on every rank",
         .value = fmt::format("{} of {} units", whole, schedule.units.size()),
         .reason = "no tensor of them has 100,000 elements",
         .alternatives = {{"none", fmt::format("{} less, and {} more gather{}",
                                               format_bytes(whole_elements -
                                                            whole_elements / request.world_size),
                                               whole, whole == 1 ? "" : "s")}}});
}

std::optional<Decision> reduce_bucket(const Request& request, const plan::Schedule& schedule) {
  const std::int64_t staging = buffer_bytes(schedule, "reduce.staging");
  if (request.bounds.reduce_bucket_elements || staging == 0) return std::nullopt;
  return Decision{
      .subject = "staging of reductions",
      .value = format_bytes(staging),
      .reason = request.on_gpu ? "up to 32 Mi elements at once" : "up to 4 Mi elements at once",
      .alternatives = {
          {"half", fmt::format("{} less, twice as many messages", format_bytes(staging / 2))}}};
}

Decision saving(const plan::Schedule& schedule) {
  std::int64_t state = 0;
  for (const plan::Unit& unit : schedule.units)
    for (const plan::BufferId id : {unit.weights, unit.master, unit.moment1, unit.moment2})
      if (id != plan::no_buffer)
        state += std::min(schedule.buffer(id).size_bytes,
                          bytes_of(schedule.buffer(id).type, unit.shard_elements));
  return {.subject = "saving",
          .value = fmt::format("{} buffers of {}", staging_ring_size,
                               format_bytes(buffer_bytes(schedule, "state.staging.0"))),
          .reason =
              "they are there whether a run saves or not; the next update of a unit waits for its "
              "copy",
          .alternatives = {{"a snapshot", fmt::format("{} more of host memory, and no wait",
                                                      format_bytes(state))}}};
}

std::optional<Decision> in_place(const Request& request, const plan::Schedule& schedule) {
  if (!accumulates_in_place(request)) return std::nullopt;
  std::int64_t largest = 0;
  for (const plan::Unit& unit : schedule.units)
    largest = std::max(largest, bytes_of(unit.micro_gradient_type, unit.element_count));
  return Decision{
      .subject = "gradients",
      .value = "added in place",
      .reason = "one GPU with f32 sums: nothing stands between a product and its sum",
      .alternatives = {{"a micro-step's own", fmt::format("up to {} more for a unit, one more pass "
                                                          "over it",
                                                          format_bytes(largest))}}};
}

}  // namespace

Decision gradient_sums(const Request& request, const spec::ModelSpec& model) {
  const std::int64_t count = spec::parameter_count(model);
  const bool wide = request.accumulate_type == DType::f32;
  const DType other = wide ? request.weight_type : DType::f32;
  return {.subject = "sums of gradients",
          .value = std::string(name_of(request.accumulate_type)),
          .reason = request.accumulation_steps > 1
                        ? "over several micro-steps; nothing is lost in adding"
                        : "one micro-step: stored as it came",
          .alternatives = {
              {std::string(name_of(other)),
               fmt::format("{} before sharding instead of {}", format_bytes(bytes_of(other, count)),
                           format_bytes(bytes_of(request.accumulate_type, count)))}}};
}

std::vector<Decision> decisions_of(const Request& request, const plan::Schedule& schedule) {
  std::vector<Decision> decisions = request.decisions;
  if (!schedule.shape_classes.empty()) decisions.push_back(shape_classes(schedule));
  const auto add = [&](std::optional<Decision> decision) {
    if (decision) decisions.push_back(std::move(*decision));
  };
  add(loss_chunks(request));
  gathers(request, schedule, decisions);
  if (request.train) {
    add(reduce_bucket(request, schedule));
    add(in_place(request, schedule));
    if (request.save) decisions.push_back(saving(schedule));
  }
  if (request.on_gpu)
    decisions.push_back(
        {.subject = "workspace of the matrix library",
         .value = format_bytes(kernels::cuda_matmul_workspace_bytes),
         .reason = "what its makers recommend; algorithms that need more are not considered",
         .alternatives = {{"none", format_bytes(kernels::cuda_matmul_workspace_bytes) +
                                       " less, and fewer algorithms"}}});
  return decisions;
}

}  // namespace underkeel::planner
