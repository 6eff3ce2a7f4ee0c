#pragma once
// Files that commands write where a user says: pages and traces.

#include <string>
#include <string_view>

#include "base/result.h"
#include "io/file.h"

namespace underkeel::apps {

constexpr std::string_view page_beginning = "<!doctype html>\n<!-- Made by underkeel.";
constexpr std::string_view trace_beginning = "{\"traceEvents\":[";

/// Writes a page or a trace, which begins as `beginning` says. Only a file that begins so too is replaced.
/// Errors:  bad_config where something else stands at `path`; io_failed.
Result<void> write_page(io::FileSystem& files, const std::string& path, std::string_view text,
                        std::string_view beginning);

}  // namespace underkeel::apps
