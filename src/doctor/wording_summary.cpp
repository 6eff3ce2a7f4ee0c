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
    Wording{"summary-nothing-wrong",
            {"nothing wrong was found in it; what it means for a run takes the run file or the "
             "DeepSpeed config besides",
             "其中没有发现问题；要判断它对训练的意义，还需要训练文件或 DeepSpeed 配置"},
            {}},
    Wording{"model-described",
            {"{architecture} with {layers} layers and {parameters} parameters, {bytes} in 16 bit",
             "{architecture}，{layers} 层，{parameters} 个参数，16 位下 {bytes}"},
            {"give the run YAML or ds_config.json besides, and memory is judged",
             "请同时给出训练 YAML 或 ds_config.json，即可判断内存"}},
    Wording{"machine-described",
            {"{nodes} nodes of {gpus} GPUs with {gpu} each, and {host} of host memory a node",
             "{nodes} 个节点，每个有 {gpus} 块 GPU（各 {gpu}），每节点主机内存 {host}"},
            {}},
    Wording{"machine-described-without-gpus",
            {"{nodes} nodes without GPUs, and {host} of host memory a node",
             "{nodes} 个节点，没有 GPU，每节点主机内存 {host}"},
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
