#pragma once
// Forecast times in words, for a person who plans a day.

#include <string>

namespace underkeel::apps {

/// "0.0932 s", "17.2 s", "12.3 min", "51.2 h": three figures; "0 s" of what is not worth a number.
std::string time_text(double seconds);

}  // namespace underkeel::apps
