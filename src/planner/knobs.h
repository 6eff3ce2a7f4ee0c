#pragma once
// The knobs of a search for the fastest run: settings that are told apart, one by one, in its answer.

#include <array>
#include <string>
#include <string_view>

#include "planner/settings.h"

namespace underkeel::planner {

constexpr std::array<std::string_view, 4> knobs = {"recompute", "micro-batch", "ZeRO stage",
                                                   "gather ahead"};

/// Where a knob stands: "block", "2 x 4", "3", "one unit".
std::string knob_text(std::string_view knob, const Settings& settings);

/// Whether these settings differ, and in this knob alone, whatever their evaluation batches are.
bool differ_in(std::string_view knob, Settings a, const Settings& b);
bool differ_in_one(const Settings& a, const Settings& b);

}  // namespace underkeel::planner
