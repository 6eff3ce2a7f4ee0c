#include "report/page.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "report/page_files.h"
#include "report/page_json.h"

namespace underkeel::report {

namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// Puts parts in the place of their {{names}}. What a part holds is not looked at again.
std::string filled(std::string_view form, const std::map<std::string_view, std::string>& parts) {
  std::string text;
  while (true) {
    const std::size_t open = form.find("{{");
    text += form.substr(0, open);
    if (open == std::string_view::npos) return text;
    const std::size_t close = form.find("}}", open);
    UK_CHECK(close != std::string_view::npos, "a {{ of the page's form has no end");
    const std::string_view name = form.substr(open + 2, close - open - 2);
    const auto part = parts.find(name);
    UK_CHECK(part != parts.end(), fmt::format("the page has no part `{}`", name));
    text += part->second;
    form.remove_prefix(close + 2);
  }
}

std::string or_null(const std::string& json) {
  return json.empty() ? "null" : json;
}

}  // namespace

std::string html_of(const Page& page) {
  const std::string data = fmt::format(
      "{{\"title\":{},\"made\":{},\"live\":{},\"plan\":{},\"run\":{}}}", safe_json(page.title),
      safe_json(page.made), page.is_live, or_null(page.plan_json), or_null(page.run_json));
  std::string script;
  for (const std::string_view file :
       {page_files::base_js, page_files::memory_curve_js, page_files::plan_picture_js,
        page_files::plan_pointer_js, page_files::tables_js, page_files::curves_js,
        page_files::run_parts_js, page_files::main_js})
    script += file;
  return filled(page_files::page_html, {{"title", escaped(page.title)},
                                        {"style", std::string(page_files::page_css)},
                                        {"d3", std::string(page_files::d3_js)},
                                        {"d3_licence", std::string(page_files::d3_licence_txt)},
                                        {"script", std::move(script)},
                                        {"data", data}});
}

std::string live_json(const std::string& run_json) {
  return "{\"run\":" + or_null(run_json) + "}";
}

}  // namespace underkeel::report
