// Spellings of the schedule's enumerations, as they stand in listings and JSON.

#include <array>

#include "plan/schedule.h"

namespace underkeel::plan {

std::string_view name_of(Kernel kernel) {
  constexpr std::array<std::string_view, kernel_count> names = {"matmul",
                                                                "column_sum",
                                                                "embedding_forward",
                                                                "embedding_backward",
                                                                "rms_norm_forward",
                                                                "rms_norm_backward",
                                                                "rope_table",
                                                                "rope_apply",
                                                                "attention_forward",
                                                                "attention_backward",
                                                                "attention_cached",
                                                                "swiglu_forward",
                                                                "swiglu_backward",
                                                                "cross_entropy",
                                                                "copy",
                                                                "fill",
                                                                "clip_factor"};
  return names[index(kernel)];
}

std::string_view name_of(Input input) {
  constexpr std::array<std::string_view, 8> names = {
      "tokens",         "targets",     "positions",  "sequence_starts",
      "gradient_scale", "step_values", "loss_scale", "control"};
  return names[index(input)];
}

std::string_view name_of(Output output) {
  constexpr std::array<std::string_view, 3> names = {"totals", "clip", "logits"};
  return names[index(output)];
}

std::string_view name_of(StatePart part) {
  constexpr std::array<std::string_view, 4> names = {"weights", "master", "exp_avg", "exp_avg_sq"};
  return names[index(part)];
}

std::string_view name_of(SegmentKind kind) {
  constexpr std::array<std::string_view, segment_kind_count> names = {
      "load",   "resume",   "micro.first",  "micro.middle", "micro.last", "micro.only",
      "update", "evaluate", "evaluate.end", "save",         "generate",   "generate.next"};
  return names[index(kind)];
}

std::string_view name_of(MemorySpace space) {
  constexpr std::array<std::string_view, memory_space_count> names = {"device", "pinned_host",
                                                                      "host", "nvme"};
  return names[index(space)];
}

std::string_view name_of(BufferKind kind) {
  constexpr std::array<std::string_view, buffer_kind_count> names = {
      "weights",  "gradients", "optimizer", "activations",
      "gathered", "staging",   "workspace", "overhead"};
  return names[index(kind)];
}

}  // namespace underkeel::plan
