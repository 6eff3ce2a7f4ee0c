#pragma once
// What one operation does, in words: "matmul x(T, 64), layers.0.full:q_proj(64, 64)^T -> q(T, 64)".

#include <string>
#include <unordered_map>

#include "plan/schedule.h"

namespace underkeel::plan {

/// Writes operations of one schedule. T stands for the rows of the micro-batch; a part of a matrix
/// is written as ranges, begin:end; a tensor inside a unit's buffer stands behind a colon. What is
/// added to stands behind "+=", what is changed where it is behind "in place".
class OpText {
 public:
  explicit OpText(const Schedule& schedule);

  /// What it reads -> writes; of an Acquire its kind and size.
  std::string of(const Op& op) const;
  /// The column before that: "+ layers.0.q" and "- layers.0.q" begin and end a buffer's life.
  std::string label(const Op& op) const;
  /// In a sentence: its label, or "acquire layers.0.q".
  std::string name_of(const Op& op) const;

 private:
  const std::string& name(BufferId id) const { return schedule_.buffer(id).name; }
  std::string tensor(const Operand& operand) const;
  std::string operand(const Operand& operand) const;
  std::string compute(const Compute& body) const;
  std::string piece(const StatePiece& piece) const;

  const Schedule& schedule_;
  std::unordered_map<BufferId, UnitId> unit_of_;  // buffers laid out like a whole unit
};

}  // namespace underkeel::plan
