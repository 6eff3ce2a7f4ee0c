// What findings about checkpoints of DeepSpeed and the Trainer say that are not whole.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{"checkpoint-without-latest",
            {"there is no `latest` in it: a resume that names no tag does not find {tag}, which is "
             "there",
             "其中没有 `latest`：不指定 tag 的恢复找不到实际存在的 {tag}"},
            {"write {tag} into a file `latest` beside that folder; nothing is to be removed",
             "在该文件夹旁边写一个内容为 {tag} 的 `latest` 文件；不要删除任何东西"}},
    Wording{"checkpoint-tag-empty",
            {"not complete: {tag} holds none of DeepSpeed's files, neither the model's nor the "
             "optimizer's",
             "不完整：{tag} 中没有 DeepSpeed 的文件，既没有模型的也没有优化器的"},
            {"copy the files from the other nodes, or take an earlier checkpoint",
             "从其他节点复制这些文件，或使用更早的检查点"}},
    Wording{"checkpoint-without-model-states",
            {"not complete: {tag} holds no model file (*_model_states.pt), without which DeepSpeed "
             "loads nothing of it",
             "不完整：{tag} 中没有模型文件（*_model_states.pt），缺少它 DeepSpeed 无法加载"},
            {"copy it from the node of rank 0, or take an earlier checkpoint",
             "从 rank 0 所在节点复制，或使用更早的检查点"}},
    Wording{
        "checkpoint-lacks-model-states",
        {"not complete: model files (*_model_states.pt) of {count} of {expected} ranks, by the "
         "highest number of any file; the first that is missing is that of rank {rank}",
         "不完整：按文件的最大编号应有 {expected} 个 rank 的模型文件（*_model_states.pt），只有 "
         "{count} 个；第一个缺少的是 rank {rank} 的"},
        {"copy the missing files from the other nodes, or take an earlier checkpoint",
         "从其他节点复制缺少的文件，或使用更早的检查点"}},
    Wording{"checkpoint-file-empty",
            {"not complete: files of it that hold nothing: {count}, the first is {file}",
             "不完整：有 {count} 个文件为空；第一个是 {file}"},
            {"copy it again, or take an earlier checkpoint", "重新复制，或使用更早的检查点"}},
    Wording{"checkpoint-file-cut",
            {"not complete: files of it that are cut off: {count}, the first is {file} with "
             "{size}, while the largest of its kind has {most}",
             "不完整：有 {count} 个文件被截断；第一个是 {file}，为 {size}，同类中最大的有 {most}"},
            {"copy it again, or take an earlier checkpoint", "重新复制，或使用更早的检查点"}},
    Wording{"checkpoint-state-broken",
            {"not complete: trainer_state.json ({size}) cannot be read: {what}; a resume stops "
             "at it",
             "不完整：trainer_state.json（{size}）无法读取：{what}；恢复会在此停止"},
            {"take an earlier checkpoint", "使用更早的检查点"}},
    Wording{"checkpoint-step-differs",
            {"not of one save: trainer_state.json says step {found}, the folder's name step "
             "{step}; a resume would go on from step {found}",
             "不是同一次保存：trainer_state.json 为第 {found} 步，文件夹名为第 {step} "
             "步；恢复会从第 {found} 步继续"},
            {"take another checkpoint, or the trainer_state.json of this one",
             "使用其他检查点，或换回它自己的 trainer_state.json"}},
    Wording{"checkpoint-weights-broken",
            {"not complete: {what} ({where})", "不完整：{what}（{where}）"},
            {"take an earlier checkpoint, or copy the file again",
             "使用更早的检查点，或重新复制该文件"}},
    Wording{"checkpoint-weights-alone",
            {"weights alone: it has no {file}, so a resume begins with new moments and a new "
             "schedule, without a word",
             "只有权重：没有 {file}，恢复时动量和学习率计划都会重新开始，且没有任何提示"},
            {"take a checkpoint that has it; for a new run from these weights: {folder}",
             "使用有该文件的检查点；用这些权重开始新的训练则指定：{folder}"}},
    Wording{
        "weights-missing-head",
        {"the head {tensor} is missing, and all else is there ({found} of {expected} parameters "
         "found): the config does not tie it to the embedding, the weights look as if it were",
         "缺少输出头 {tensor}，其余都在（找到 {found} 个参数，应有 "
         "{expected}）：配置没有将其与嵌入绑定，而权重看起来是绑定的"},
        {"\"tie_word_embeddings\": true in config.json, if the model was trained so; else take "
         "the file that holds the head",
         "若模型如此训练，在 config.json 中设 \"tie_word_embeddings\": "
         "true；否则使用含有输出头的文件"}},
    Wording{"weights-prefixed",
            {"{count} tensors are missing by their names, and {there} of them are there with "
             "`{prefix}` in front, the first as {tensor}: what was saved is a wrapper around the "
             "model",
             "按名称缺少 {count} 个张量，其中 {there} 个带有前缀 `{prefix}`，第一个是 "
             "{tensor}：保存的是模型外面的包装"},
            {"save the model inside it again (of DistributedDataParallel `model.module`, of PEFT "
             "`merge_and_unload()`), or take the prefix off the names",
             "重新保存其中的模型（DistributedDataParallel 用 `model.module`，PEFT 用 "
             "`merge_and_unload()`），或从名称中去掉该前缀"}},
    Wording{"weights-download-unfinished",
            {"no weights in it, but {file} ({size}): a download that has not come to its end",
             "其中没有权重，只有 {file}（{size}）：下载没有完成"},
            {"let the download end, or begin it again", "等待下载完成，或重新下载"}},
    Wording{"resume-by-itself",
            {"output_dir holds {name}, and neither resume_from_checkpoint nor overwrite_output_dir "
             "is set: LLaMA-Factory goes on from it by itself, so memory is judged as of a resume",
             "output_dir 中有 {name}，且没有设置 resume_from_checkpoint 和 "
             "overwrite_output_dir：LLaMA-Factory 会自动从它继续，因此按恢复来判断内存"},
            {"overwrite_output_dir: true, or another output_dir, for a run from the start",
             "要从头训练，设 overwrite_output_dir: true 或换一个 output_dir"}},
    Wording{"checkpoint-of-no-deepspeed",
            {"DeepSpeed wrote nothing into it (no global_step folder): a run with a DeepSpeed "
             "config finds no valid checkpoint there and stops",
             "其中没有 DeepSpeed 写出的内容（没有 global_step 文件夹）：带 DeepSpeed "
             "配置的训练找不到有效的检查点，会停止"},
            {"take a checkpoint that a run with DeepSpeed wrote, or start from its weights: "
             "model_name_or_path: {folder}",
             "使用带 DeepSpeed 的训练写出的检查点，或从其权重开始：model_name_or_path: {folder}"}},
};

}  // namespace

std::span<const Wording> checkpoint_wordings() {
  return wordings;
}

}  // namespace underkeel::doctor
