#pragma once
// Parts that the complete and the folded listing share. Private to src/plan.

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "plan/op_text.h"
#include "plan/plan.h"

namespace underkeel::plan::parts {

using Out = std::back_insert_iterator<std::string>;

/// Ranks, stage, parameters; lanes; shape classes.
void write_summary(Out out, const Plan& plan);
/// "units", and the names of the columns of unit_row().
std::string units_title();
/// What a unit has, behind its name.
std::string unit_row(const Schedule& schedule, const Unit& unit);
/// ": weights 962 KiB, activations 834 KiB".
std::string kinds_text(const Peak& peak);
/// " at 0174 acquire head.dlogits".
std::string peak_moment(const Plan& plan, const Peak& peak, const OpText& text);
/// The largest sum of every segment and space, and the operation at which it is.
void write_peaks(Out out, const Plan& plan, const OpText& text);
/// Which segment may follow which.
void write_program(Out out, const Program& program);
/// The same for a folded listing: runs of equal layers, segments that hold the same from their start, and those that the
/// same ones follow, stand in one line.
void write_folded_units(Out out, const Schedule& schedule);
void write_folded_persistent(Out out, const Plan& plan);
void write_folded_peaks(Out out, const Plan& plan, const OpText& text);
void write_folded_program(Out out, const Program& program);
/// "segment micro.only, T up to 512 rows, 478 operations".
std::string segment_title(const Segment& segment);
/// What an operation waits for, what it leaves running, when and where it runs; `mark` stands before positions.
std::vector<std::string> conditions(const Schedule& schedule, const Segment& segment, const Op& op,
                                    const OpText& text, std::string_view mark = {});

}  // namespace underkeel::plan::parts
