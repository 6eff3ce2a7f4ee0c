// Words of the lines that come before the findings.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{"summary-verdict",
            {"{engines}: {verdict}, {why}{more}", "{engines}：{verdict}，{why}{more}"},
            {}},
    Wording{"summary-no-run",
            {"no run was asked about; judged was what was given:",
             "没有询问训练；只判断了所给的内容："},
            {}},
    Wording{"summary-counts",
            {"{errors} errors, {warnings} warnings and {notes} notes below; ",
             "下面有 {errors} 个错误、{warnings} 个警告、{notes} 条说明；"},
            {}},
    Wording{"summary-exit-code",
            {"exit code {code} is that of {engine} (--engine {flag}: {other})",
             "退出码 {code} 以 {engine} 为准（--engine {flag}：{other}）"},
            {}},
    Wording{"summary-exit-code-of-files", {"exit code {code}", "退出码 {code}"}, {}},
};

constexpr std::array parts = {
    Phrase{"summary.and", {"; ", "；另有 "}},
    Phrase{"summary.more-error", {" more error", " 个错误"}},
    Phrase{"summary.more-errors", {" more errors", " 个错误"}},
    Phrase{"summary.nothing-told", {"nothing that was given decides it", "所给的内容不足以判断"}},
};

}  // namespace

std::span<const Wording> summary_wordings() {
  return wordings;
}

std::span<const Phrase> summary_phrases() {
  return parts;
}

}  // namespace underkeel::doctor
