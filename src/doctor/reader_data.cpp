// Chinese for what the readers of data sets, weights and tokenizers say.

#include <array>

#include "doctor/reader_words.h"

namespace underkeel::doctor {
namespace {

constexpr std::array sentences = {
    // Files that are something else.
    Text{"the content is {}", "文件内容是{}"},
    Text{"content is {}, name ends in {}", "内容是{}，文件名以 {} 结尾"},
    Text{"a Git LFS pointer, not the file itself, which has {} bytes",
         " Git LFS 指针，而不是文件本身（{} 字节）"},
    Text{"a Git LFS pointer, not the file itself", " Git LFS 指针，而不是文件本身"},
    Text{"`git lfs pull` in its folder fetches the file; or download it by itself",
         "在其文件夹中运行 `git lfs pull` 取得该文件；或单独下载它"},
    Text{"a web page (HTML)", "网页（HTML）"},
    Text{"download the file itself; on huggingface.co its address has /resolve/ in place of /blob/",
         "请下载文件本身；在 huggingface.co 上，其地址用 /resolve/ 代替 /blob/"},
    Text{"UTF-16 text without a byte-order mark", " UTF-16 文本，没有字节序标记"},
    Text{"UTF-32 text without a byte-order mark", " UTF-32 文本，没有字节序标记"},
    Text{"UTF-16 text", " UTF-16 文本"},
    Text{"UTF-32 text", " UTF-32 文本"},
    Text{"iconv -f {} -t UTF-8 makes it UTF-8", "iconv -f {} -t UTF-8 可转换为 UTF-8"},
    Text{"compressed by {}", " {} 压缩数据"},
    Text{"a zip archive", " zip 压缩包"},
    Text{"a JSON list", " JSON 列表"},
    Text{"one JSON object a line", "每行一个 JSON 对象"},
    Text{"JSON objects of several lines", "跨多行的 JSON 对象"},
    Text{"gunzip it first", "请先用 gunzip 解压"},
    Text{"zstd -d it first", "请先用 zstd -d 解压"},
    Text{"unpack it first", "请先解包"},
    Text{"of a spreadsheet write a .csv", "表格请另存为 .csv"},
    Text{"rename it to end in {}", "请改名，以 {} 结尾"},
    Text{"rename it to {}, here and in dataset_info.json",
         "请改名为 {}，dataset_info.json 中也同样修改"},
    Text{"the name ends in `{}`; small letters are wanted, as by LLaMA-Factory: `{}`",
         "文件名以 `{}` 结尾；与 LLaMA-Factory 一样，应为小写：`{}`"},
    Text{"files that end in `{}` are not supported", "不支持以 `{}` 结尾的文件"},
    Text{"data set `{}` mixes files that end in `{}` and `{}`",
         "数据集 `{}` 混有以 `{}` 和 `{}` 结尾的文件"},
    Text{"one kind of file in a data set", "一个数据集只用一种文件"},
    Text{"write it as JSON lines: {}", "请写成 JSON 行：{}"},
    // dataset_info.json.
    Text{"there is no dataset_info.json; the folder holds {} data files, the first {}",
         "没有 dataset_info.json；文件夹里有 {} 个数据文件，第一个是 {}"},
    Text{"there is no dataset_info.json; the folder holds 1 data file, the first {}",
         "没有 dataset_info.json；文件夹里有 1 个数据文件：{}"},
    Text{"there is no dataset_info.json; the folder holds 0 data files",
         "没有 dataset_info.json；文件夹里有 0 个数据文件"},
    Text{"dataset_dir is no folder that is there", "dataset_dir 指向的文件夹不存在"},
    Text{"dataset_dir says where the files are", "dataset_dir 指明文件所在"},
    Text{"there is no data set `{}`", "没有数据集 `{}`"},
    Text{"data set `{}`: there is no such file", "数据集 `{}`：没有这个文件"},
    Text{"data set `{}`: the folder is empty", "数据集 `{}`：文件夹是空的"},
    Text{"data set `{}` names no `file_name`", "数据集 `{}` 没有写 `file_name`"},
    Text{"`file_name` of data set `{}` is empty", "数据集 `{}` 的 `file_name` 为空"},
    Text{"data set `{}`: the column `{}` is in no record; the first one has `{}`",
         "数据集 `{}`：没有一条记录有列 `{}`；第一条有 `{}`"},
    Text{"mend the broken records, or leave them out with underkeel.skip_broken_records: true",
         "修正损坏的记录，或用 underkeel.skip_broken_records: true 跳过"},
    Text{"dataset_info.json says how records are read: look at formatting, columns and tags",
         "dataset_info.json 指明如何读取记录：请检查 formatting、columns 和 tags"},
    Text{"cutoff_len: {} keeps every sample whole", "cutoff_len: {} 可让每个样本保持完整"},
    Text{"all answers are empty, and the template ends them with nothing",
         "所有回答都为空，而模板不在其后加任何结束符"},
    // Weights and checkpoints.
    Text{"no {}: not finished, or written by another program", "没有 {}：未完成，或由其他程序写出"},
    Text{"its manifest is of step {}", "其 manifest 属于第 {} 步"},
    Text{"copy or download the file again", "请重新复制或下载该文件"},
    Text{"not JSON at byte {}", "第 {} 字节处不是 JSON"},
};

}  // namespace

std::span<const Text> data_sentences() {
  return sentences;
}

}  // namespace underkeel::doctor
