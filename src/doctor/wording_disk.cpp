// What findings about the disk say, and about models that are exported or merged.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{"deepspeed-disk",
            {"a checkpoint takes {each} of disk, {state} of state and {weights} of weights; "
             "{count} checkpoints stand there at once{then}: {needed} {bound}{least}",
             "一个检查点占磁盘 {each}：状态 {state}，权重 {weights}；同时有 {count} "
             "个{then}：{bound} {needed}{least}"},
            {}},
    Wording{"deepspeed-disk-fits",
            {"a checkpoint takes {each} of disk, {state} of state and {weights} of weights; "
             "{count} checkpoints stand there at once{then}: {bound} {needed} of {free}{least}",
             "一个检查点占磁盘 {each}：状态 {state}，权重 {weights}；同时有 {count} "
             "个{then}：{bound} {needed}，可用 {free}{least}"},
            {}},
    Wording{
        "deepspeed-disk-does-not-fit",
        {"the checkpoints do not fit the disk: {each} each, {state} of state and {weights} of "
         "weights; {count} checkpoints stand there at once{then}: {needed} {bound}{least}, {free} "
         "are free",
         "磁盘放不下检查点：每个 {each}（状态 {state}，权重 {weights}）；同时有 {count} "
         "个{then}：{bound} {needed}{least}，可用 {free}"},
        {"{cure}", "{cure}"}},
    Wording{
        "deepspeed-disk-unbounded",
        {"a checkpoint takes {each} of disk, {state} of state and {weights} of weights, and "
         "in the end all of them{tail} stay; free: {free}, room for: {room}",
         "一个检查点占磁盘 {each}：状态 {state}，权重 {weights}；最后保留全部检查点{tail}；可用："
         "{free}，可放：{room}"},
        {"save_total_limit says how many are kept", "save_total_limit 指定保留几个"}},
    Wording{"underkeel-disk",
            {"disk: {bound} {needed}, for {count} checkpoints of {each} at once{then}{least}",
             "磁盘：{bound}需要 {needed}，同时有 {count} 个 {each} 的检查点{then}{least}"},
            {}},
    Wording{
        "underkeel-disk-fits",
        {"disk: {bound} {needed} of {free}, for {count} checkpoints of {each} at "
         "once{then}{least}",
         "磁盘：{bound}需要 {needed}，可用 {free}，同时有 {count} 个 {each} 的检查点{then}{least}"},
        {}},
    Wording{"underkeel-disk-does-not-fit",
            {"the checkpoints do not fit the disk: {bound} {needed} needed, {free} free, for "
             "{count} checkpoints of {each} at once{then}{least}",
             "磁盘放不下检查点：{bound}需要 {needed}，可用 {free}，同时有 {count} 个 {each} "
             "的检查点{then}{least}"},
            {"{cure}", "{cure}"}},
    Wording{
        "disk-fails-by-export",
        {"the disk has no room for the export after the run: {count} checkpoints of {each} at "
         "once{then} need {needed} {bound}{least}, {free} are free; without the export they fit",
         "磁盘放不下训练之后的导出：同时有 {count} 个 {each} 的检查点{then}，{bound}需要 "
         "{needed}{least}，"
         "可用 {free}；不导出则放得下"},
        {"{cure}", "{cure}"}},
    Wording{"final-folder",
            {"disk: {needed}, for the final folder of {final}{export}; no checkpoint is saved",
             "磁盘：需要 {needed}，用于最终文件夹 {final}{export}；不保存检查点"},
            {}},
    Wording{"final-folder-fits",
            {"disk: {needed} of {free}, for the final folder of {final}{export}; no checkpoint is "
             "saved",
             "磁盘：需要 {needed}，可用 {free}，用于最终文件夹 {final}{export}；不保存检查点"},
            {}},
    Wording{"final-folder-does-not-fit",
            {"the model that is saved at the end does not fit the disk: {needed} needed, {free} "
             "free",
             "磁盘放不下最后保存的模型：需要 {needed}，可用 {free}"},
            {"{cure}", "{cure}"}},
    Wording{"export-sizes",
            {"an export reads and writes {whole} in 16 bit (free: {free}); {who} one shard of "
             "{shard} and one tensor of {tensor} at most, and no device memory (host memory: "
             "{limit})",
             "导出以 16 位读写 {whole}（空闲：{free}）；{who}一个 {shard} 的分片加一个 {tensor} "
             "的张量，不用设备内存（主机内存：{limit}）"},
            {}},
    Wording{"export-fills-the-disk",
            {"the export needs {whole} in 16 bit, whole shapes whatever the stage; {free} are free "
             "(host "
             "memory: {limit}; a shard {shard}, a tensor {tensor})",
             "导出以 16 位需要 {whole}，不论 stage 都按完整形状计；空闲 {free}（主机内存 "
             "{limit}；分片 {shard}，张量 {tensor}）"},
            {"free the disk before the training, or leave the export out; training and adapter "
             "checkpoints are "
             "far smaller",
             "训练前先腾出磁盘，或不做导出；训练和适配器检查点要小得多"}},
    Wording{"merge-holds-the-whole-model",
            {"a tool that holds the whole model in host memory fails here: {whole} of {limit}",
             "把整个模型放在主机内存里的工具在此会失败：{whole}，只有 {limit}"},
            {"{way}", "{way}"}},
    Wording{"merge-not-built",
            {"merging adapters into their base is not built yet in Underkeel: `underkeel export` "
             "copies whole models, and refuses a folder with adapters",
             "Underkeel 尚未实现把适配器合并进基座：`underkeel export` "
             "只复制完整模型，带适配器的文件夹会被拒绝"},
            {"merge with PEFT (merge_and_unload) where {whole} of host memory and {whole} of disk "
             "are free; Underkeel trains on the folder that it writes",
             "在有 {whole} 空闲主机内存和 {whole} 空闲磁盘的机器上用 PEFT（merge_and_unload）合并；"
             "Underkeel 可在其写出的文件夹上训练"}},
    Wording{"merge-fits-whole",
            {"a tool that holds the whole model in host memory needs {whole} of {limit}",
             "把整个模型放在主机内存里的工具需要 {whole}，共有 {limit}"},
            {}},
};

constexpr std::array parts = {
    Phrase{"disk.nothing-to-resume", {"nothing to resume from", "无法据此恢复"}},
    Phrase{"disk.all-kept",
           {" (all are kept, and how many saves there are is not known)",
            "（全部保留，而保存次数未知）"}},
    Phrase{"bound.most", {"at most", "最多"}},
    Phrase{"bound.least", {"at least", "至少"}},
    Phrase{"disk.then", {", then", "，之后剩"}},
    Phrase{"disk.of-them", {" of them", " 个"}},
    Phrase{"disk.and-final", {" and the final folder of", "，加最终文件夹"}},
    Phrase{"disk.and-export", {" and the exported model of", "，加导出的模型"}},
    Phrase{"disk.free", {"free at least", "至少再腾出"}},
    Phrase{"disk.or-elsewhere",
           {" of the disk, or give an output_dir on another one",
            " 磁盘空间，或把 output_dir 放到另一块磁盘"}},
    Phrase{"export.elsewhere",
           {"export to another disk, or after the checkpoints are gone",
            "导出到另一块磁盘，或先删除检查点再导出"}},
    Phrase{"export.ours", {"ours holds", "本引擎最多持有"}},
    Phrase{"export.by-tensor", {"tensor by tensor a tool holds", "逐张量处理的工具最多持有"}},
    Phrase{"export.with-ours",
           {"copy tensor by tensor: underkeel export", "逐张量复制：underkeel export"}},
    Phrase{"merge.elsewhere",
           {"merge with PEFT on a machine whose host memory is more than",
            "用 PEFT 在主机内存大于以下数值的机器上合并："}},
};

}  // namespace

std::span<const Wording> disk_wordings() {
  return wordings;
}

std::span<const Phrase> disk_phrases() {
  return parts;
}

}  // namespace underkeel::doctor
