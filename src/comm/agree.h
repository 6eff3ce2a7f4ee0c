#pragma once
// One outcome for all ranks.

#include <functional>

#include "base/result.h"
#include "comm/communicator.h"

namespace underkeel::comm {

/// Runs `body` on rank 0 and tells every rank how it went, so that all go on or all stop.
Result<void> on_rank_0(Communicator& control, const std::function<Result<void>()>& body);

/// All ranks learn the first error of any rank.
Result<void> agree(Communicator& control, Result<void> own);
/// The same; what this rank has, if anything, stays where it is.
template <class T>
Result<void> agree(Communicator& control, const Result<T>& own) {
  return agree(control, own ? Result<void>{} : Result<void>(tl::unexpected(own.error())));
}

}  // namespace underkeel::comm
