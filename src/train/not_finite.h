#pragma once
// Which gradients are not finite, for the message of a run that ends over them.

#include <string>

#include "comm/communicator.h"
#include "exec/executor.h"
#include "plan/plan.h"

namespace underkeel::train {

/// "; the gradients of 3 tensors are not finite, the first of them model.layers.1.mlp.up_proj.weight
/// on rank 0", over all ranks; empty when all are finite, so that only the loss is not. Reads the
/// accumulated gradients after an update, one unit at a time; called by all ranks together.
Result<std::string> describe_not_finite(const exec::Executor& executor, const plan::Plan& plan,
                                        comm::Communicator& control);

}  // namespace underkeel::train
