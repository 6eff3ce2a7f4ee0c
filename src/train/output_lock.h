#pragma once
// One run at a time writes into an output folder.

#include <string>

#include "base/result.h"

namespace underkeel::train {

/// A lock on the folder itself, held until this goes or the process ends, however it ends. File systems
/// without locks give none, silently: it guards against mistakes only.
class OutputLock {
 public:
  /// Waits a few seconds for a run that is just ending.
  /// Errors: bad_config when another run holds the folder.
  static Result<OutputLock> take(const std::string& output);
  OutputLock(OutputLock&& other) noexcept;
  OutputLock& operator=(OutputLock&&) = delete;
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;
  ~OutputLock();

 private:
  explicit OutputLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace underkeel::train
