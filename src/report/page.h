#pragma once
// The page: one HTML file with all that it needs inside, no network.

#include <string>

namespace underkeel::report {

struct Page {
  std::string title;
  std::string made;       // a line about the maker: "underkeel 0.1.0"
  std::string plan_json;  // of to_json(PlanRecord); empty: none
  std::string run_json;   // of to_json(RunRecord); empty: none
  bool is_live = false;   // asks its server for report.json again and again
};

/// The whole file.
std::string html_of(const Page& page);
/// What a page that is live asks for.
std::string live_json(const std::string& run_json);

}  // namespace underkeel::report
