#pragma once
// Which parameters stage 3 holds gathered, moment by moment of one step, and what a reduction of gradients finds there:
// DeepSpeed's own rules of fetching ahead and releasing, run over the sizes of the parameters. Pure.

#include <vector>

#include "doctor/deepspeed_sizes.h"

namespace underkeel::doctor {

/// Gradients that are reduced together, in elements.
struct Reduction {
  double gathered = 0;  // parameters, at that moment
  double elements = 0;  // of the gradients
  double largest = 0;   // the largest of them
  double next = 0;      // the gradient that had no place with them; 0 for the last
  double left = 0;      // of the backward pass, as a fraction
  int count = 0;
};

/// In elements, without what is gathered for good.
struct Window {
  double most = 0;                    // gathered at once, in forward and backward
  std::vector<Reduction> reductions;  // in order; the last ends the backward pass
};

/// Of a step after the first, whose order DeepSpeed has recorded.
Window window_of(const DeepspeedRun& run);

/// Of stage 1, after the backward pass: parameters in their order. `gathered`, `next` and `left` say nothing.
std::vector<Reduction> reductions_in_order(const DeepspeedRun& run);

/// Whether a gather makes memory: on one rank it is a view of the shard, unless that is on the host.
bool gathers(const DeepspeedRun& run);
/// Bytes of parameters that may be gathered at once at stage 3, besides those that stay so.
double gathered_bytes(const DeepspeedRun& run);
/// Bytes that several of them are received in at once, and then copied out of; at most the `gathered` bytes.
double received_bytes(const DeepspeedRun& run, double gathered);

}  // namespace underkeel::doctor
