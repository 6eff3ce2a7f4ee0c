#pragma once
// The files of src/report/page and D3, as the build has put them into the program (cmake/embed.cmake).

#include <string_view>

namespace underkeel::report::page_files {

extern const std::string_view page_html;
extern const std::string_view page_css;
extern const std::string_view base_js;
extern const std::string_view memory_curve_js;
extern const std::string_view plan_picture_js;
extern const std::string_view plan_pointer_js;
extern const std::string_view tables_js;
extern const std::string_view curves_js;
extern const std::string_view run_parts_js;
extern const std::string_view main_js;
extern const std::string_view d3_js;
extern const std::string_view d3_licence_txt;

}  // namespace underkeel::report::page_files
