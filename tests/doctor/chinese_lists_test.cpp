// Lists in Chinese sentences: each item whole, and between them the marks of the language.

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/reader_words.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

std::string chinese_of(const Diagnosis& diagnosis, std::string_view id) {
  const auto all = found(diagnosis, id);
  return all.empty()
             ? "no " + std::string(id)
             : message_of(all[0], Language::chinese) + " / " + fix_of(all[0], Language::chinese);
}

TEST(ChineseLists, OfAFindingHaveChineseMarks) {
  Files files;
  files.write("model.json", model_json(qwen_half));
  files.write("train.yaml",
              "stage: sft\nfinetuning_type: full\nbf16: true\ndataset: d\n"
              "per_device_train_batch_size: 4\ngradient_accumulation_steps: 4\n");
  files.write("ds_config.json", R"({"train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 4, "offload_param": {"device": "disk"}}})");
  files.write("hardware.yaml", "gpus_per_node: 4\ngpu_mem_gib: 80\nhost_ram_gib: 900\n");

  const Diagnosis diagnosis = files.diagnose();

  const std::string ranks = chinese_of(diagnosis, "batch-on-other-ranks");
  EXPECT_NE(ranks.find("16: 1、8: 2"), std::string::npos) << ranks;
  const std::string english = says(diagnosis, "batch-on-other-ranks");
  EXPECT_NE(english.find("16: 1, 8: 2"), std::string::npos) << english;
  bool has_choices = false;
  for (const Finding& finding : diagnosis.findings) {
    const std::string text = message_of(finding, Language::chinese);
    const bool lists_places = text.find("`none`、`cpu`、`nvme`") != std::string::npos;
    has_choices = has_choices || lists_places;
  }
  EXPECT_TRUE(has_choices) << messages(diagnosis);
}

TEST(ChineseLists, OfTermsHaveChineseMarks) {
  Files files;
  files.write("model.json", model_json(qwen_half));
  files.write("ds_config.json", R"({"train_micro_batch_size_per_gpu": 1, "bf16":
    {"enabled": true}, "zero_optimization": {"stage": 3}})");
  files.write("hardware.yaml", "gpus_per_node: 4\ngpu_mem_gib: 80\nhost_ram_gib: 900\n");

  const std::string state = chinese_of(files.diagnose(), "device-state");

  EXPECT_NE(state.find("、"), std::string::npos) << state;
  EXPECT_EQ(state.find(", "), std::string::npos) << state;
}

TEST(ChineseLists, KeepQuotedNamesWhole) {
  EXPECT_EQ(in_chinese("it has: a, b"), "其中有：`a`、`b`");
  EXPECT_EQ(in_chinese("it has: a, `b, c`, `d; e`, `f and g`"),
            "其中有：`a`、`b, c`、`d; e`、`f and g`");
  EXPECT_EQ(in_chinese("supported are `x y`, b and c"), "支持 `x y`、`b` 和 `c`");
}

TEST(ChineseLists, OfDataSetsWithSeparatorsInTheirNamesAreNotTorn) {
  const Finding finding{.id = "data-unusable",
                        .slots = {{"what", "there is no data set `x`"},
                                  {"where", "dataset_info.json"},
                                  {"do", "it has: plain, `two, parts`, `half; rest`"}}};

  const std::string fix = fix_of(finding, Language::chinese);

  EXPECT_NE(fix.find("`plain`、`two, parts`、`half; rest`"), std::string::npos) << fix;
}

}  // namespace
}  // namespace underkeel::doctor
