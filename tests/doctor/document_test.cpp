// Files are recognised by what is in them, whatever they are called, and nothing in them ends the program.

#include "doctor/document.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

FileKind kind_of_text(std::string_view text) {
  test::TemporaryFolder folder;
  test::write_text(folder / "file", text);
  std::vector<Finding> findings;
  return open_document(folder / "file", findings).kind;
}

TEST(Document, IsRecognisedByItsContent) {
  EXPECT_EQ(kind_of_text(R"({"zero_optimization": {"stage": 2}})"), FileKind::deepspeed_config);
  EXPECT_EQ(kind_of_text("// mine\n{\"train_batch_size\": 8,}"), FileKind::deepspeed_config);
  EXPECT_EQ(kind_of_text(R"({"zero_optimisation": {}, "gradient_cliping": 1, "bf16": {}})"),
            FileKind::deepspeed_config);
  EXPECT_EQ(kind_of_text("stage: sft\nfinetuning_type: lora\nbf16: true\n"), FileKind::run_file);
  EXPECT_EQ(kind_of_text("finetuning_type: lora\nexport_dir: a\nexport_size: 5\n"),
            FileKind::export_file);
  EXPECT_EQ(kind_of_text("compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"),
            FileKind::accelerate_config);
  EXPECT_EQ(kind_of_text(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2})"),
            FileKind::model_config);
  EXPECT_EQ(kind_of_text(R"({"nodes": 1, "gpus_per_node": 8, "host_ram_gib": 5})"),
            FileKind::hardware);
  EXPECT_EQ(kind_of_text(R"({"peft_type": "LORA", "r": 4, "target_modules": []})"),
            FileKind::adapter_config);
  EXPECT_EQ(kind_of_text(R"({"eval": {"samples": 3, "tokens": 5}})"), FileKind::data_shape);
  EXPECT_EQ(kind_of_text(R"({"mine": {"file_name": "a.json"}})"), FileKind::dataset_info);
  EXPECT_EQ(kind_of_text("{\"a\": 1}\n{\"a\": 2}\n"), FileKind::records);
  EXPECT_EQ(kind_of_text("[{\"a\": 1}]"), FileKind::records);
  EXPECT_EQ(kind_of_text(R"({"tokenizer_class": "X", "eos_token": "</s>"})"),
            FileKind::tokenizer_config);
  EXPECT_EQ(kind_of_text(R"({"eos_token_id": 2, "do_sample": true})"), FileKind::generation_config);
  EXPECT_EQ(kind_of_text("Traceback (most recent call last):\nRuntimeError: CUDA out of memory"),
            FileKind::log);
  EXPECT_EQ(kind_of_text("Turn off pin_memory, it cured my problem."), FileKind::advice);
  EXPECT_EQ(kind_of_text(std::string("\x10\0\0\0\0\0\0\0{\"a\":1}", 16)), FileKind::weights);
}

TEST(Document, BecomesAFindingWhenItIsBroken) {
  for (const char* text : {"{\"zero_optimization\": {\"stage\": 2", "{\"zero_optimization\" 3}",
                           "{\"zero_optimization\": {}, \"zero_optimization\": {}"}) {
    Files files;
    files.write("ds_config.json", text);

    const Diagnosis diagnosis = files.diagnose();

    EXPECT_EQ(found(diagnosis, "file-broken").size(), 1u) << text;
    EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 2);
  }
  Files files;
  files.write("train.yaml", "model_name_or_path: [a\n");
  EXPECT_EQ(found(files.diagnose(), "file-broken").size(), 1u);
  files.question.paths = {files.at("absent")};
  EXPECT_EQ(found(files.diagnose(), "file-absent").size(), 1u);
}

TEST(Document, SurvivesWhatIsNoFileOfOurs) {
  const std::string texts[] = {"",
                               "\n\n",
                               std::string(100, '\0'),
                               std::string(1 << 17, '{'),
                               std::string(1 << 17, '['),
                               "\xFF\xFE",
                               "null",
                               "3",
                               "- a\n- b\n",
                               "{\"a\": {\"samples\": 1, \"tokens\": null}}",
                               "{}",
                               "[]",
                               std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F{", 9)};
  for (const std::string& text : texts) {
    Files files;
    files.write("file", text);
    const Diagnosis diagnosis = files.diagnose();
    EXPECT_FALSE(to_json(diagnosis, Language::chinese).empty());
    EXPECT_FALSE(to_text(diagnosis, Language::english).empty());
  }
}

TEST(Document, SaysWhatAFileIsInPlaceOfWhatItShouldBe) {
  using namespace std::string_literals;
  struct Stand {
    const char* name;
    std::string content;
    const char* says;
    const char* says_chinese;
  };
  const Stand files_of_others[] = {
      {"ds_config.json", "<!DOCTYPE html>\n<html>", "a web page (HTML)", "网页"},
      {"config.json", "version https://git-lfs.github.com/spec/v1\nsize 650\n",
       "a Git LFS pointer, not the file itself, which has 650 bytes", "Git LFS 指针"},
      {"train.yaml", "m\0o\0d\0e\0"s, "UTF-16 text without a byte-order mark",
       "UTF-16 文本，没有字节序标记"}};
  for (const Stand& stand : files_of_others) {
    Files files;
    files.write(stand.name, stand.content);

    const auto all = found(files.diagnose(), "file-foreign");

    ASSERT_EQ(all.size(), 1u) << stand.name;
    EXPECT_EQ(all[0].file, stand.name);
    EXPECT_NE(message_of(all[0], Language::english).find(stand.says), std::string::npos);
    EXPECT_NE(message_of(all[0], Language::chinese).find(stand.says_chinese), std::string::npos)
        << message_of(all[0], Language::chinese);
    EXPECT_FALSE(fix_of(all[0], Language::english).empty());
  }
}

// JSON that is whole and holds nothing to read is neither a data set nor unknown.
TEST(Document, IsToldWhenItHoldsNoObject) {
  struct Bare {
    const char* name;
    const char* content;
    const char* id;
    const char* says;
  };
  for (const Bare& bare :
       {Bare{"ds_config.json", "null\n", "file-holds-no-object", "holds null"},
        Bare{"x.json", "\"text\"", "file-holds-no-object", "holds \"text\""},
        Bare{"x.json", " 3 ", "file-holds-no-object", "holds 3"},
        Bare{"ds_z3.json", R"([{"train_batch_size": 1}])", "file-holds-no-object", "holds a list"},
        Bare{"x.json", "{ }", "file-holds-nothing", "{}"},
        Bare{"ds_config.json", "{\n}\n", "batch-is-missing", "train_batch_size"}}) {
    Files files;
    files.write(bare.name, bare.content);

    const Diagnosis diagnosis = files.diagnose();

    EXPECT_NE(says(diagnosis, bare.id).find(bare.says), std::string::npos)
        << bare.content << ": " << says(diagnosis, bare.id);
    EXPECT_TRUE(found(diagnosis, "data-unusable").empty());
  }
}

TEST(Document, OfZeroBytesAloneIsTold) {
  Files files;
  files.write("ds_config.json", "");
  std::filesystem::resize_file(files.at("ds_config.json"), std::int64_t{10} << 30);  // sparse

  EXPECT_NE(
      says(files.diagnose(), "file-foreign").find("zero bytes alone, as far as the first 65536"),
      std::string::npos);
}

TEST(Document, NestedDeeplyIsNoWrongJson) {
  Files files;
  std::string text = "{\"zero_optimization\":\n";
  for (int i = 0; i < 150; ++i) text += "{\"a\":\n";
  files.write("ds_config.json", text + "1" + std::string(151, '}'));

  const std::string said = says(files.diagnose(), "file-broken");

  EXPECT_NE(said.find("nested deeper than 64 levels, which no configuration is (ds_config.json, "
                      "line 66"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("not valid"), std::string::npos) << said;
}

TEST(Document, IsNeitherAPipeNorADevice) {
  Files files;
  files.write("folder/file", "");
  ASSERT_EQ(mkfifo(files.at("pipe").c_str(), 0600), 0);
  files.question.paths = {files.at("pipe"), "/dev/zero"};

  EXPECT_EQ(found(files.diagnose(), "file-no-file").size(), 2u);
}

TEST(Document, IsWarnedOfWhenOnlyDeepspeedReadsIt) {
  Files files;
  files.write("ds_config.json",
              "{\n  \"train_batch_size\": 4,\n  \"zero_optimization\": "
              "{\"stage\": 2},\n}\n");

  const auto all = found(files.diagnose(), "json-not-strict");

  ASSERT_EQ(all.size(), 1u);
  const std::string message = message_of(all[0], Language::english);
  EXPECT_NE(message.find("line 3, column 36"), std::string::npos) << message;
  EXPECT_NE(message.find("HF Trainer"), std::string::npos) << message;
}

TEST(Document, MayBeginWithAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  const std::pair<const char*, FileKind> texts[] = {
      {R"({"zero_optimization": {"stage": 2}})", FileKind::deepspeed_config},
      {"stage: sft\nfinetuning_type: lora\nbf16: true\n", FileKind::run_file},
      {"compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n",
       FileKind::accelerate_config},
      {R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2})",
       FileKind::model_config},
      {"nodes: 1\ngpus_per_node: 8\nhost_ram_gib: 5\n", FileKind::hardware},
      {R"({"mine": {"file_name": "a.json"}})", FileKind::dataset_info},
      {"{\"a\": 1}\n{\"a\": 2}\n", FileKind::records},
      {"[{\"a\": 1}]", FileKind::records},
      {"Traceback (most recent call last):\nRuntimeError: x", FileKind::log},
      {"Turn off pin_memory, it cured my problem.", FileKind::advice}};
  for (const auto& [text, kind] : texts) EXPECT_EQ(kind_of_text(mark + text), kind) << text;
}

TEST(Document, OfJsonWithAByteOrderMarkIsReadAndWarnedOf) {
  const std::string mark = "\xEF\xBB\xBF";
  Files files;
  files.write("ds_config.json", mark + R"({"zero_optimization": {"stage": 3}})");
  const auto alone = found(files.diagnose(), "json-not-strict");
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].severity, Severity::warning);

  files.write("train.yaml", mark + "finetuning_type: full\nbf16: true\ndataset: d\n");
  files.write("model.json", mark + model_json(qwen_half));
  files.write("hardware.yaml", mark + "gpus_per_node: 8\ngpu_mem_gib: 80\nhost_ram_gib: 900\n");
  const Diagnosis beside = files.diagnose();

  const auto all = found(beside, "json-not-strict");
  ASSERT_EQ(all.size(), 2u) << messages(beside);
  EXPECT_NE(message_of(all[0], Language::english).find("line 1, column 1: a byte-order mark"),
            std::string::npos);
  EXPECT_EQ(exit_code_of(beside, Engine::deepspeed), 2);
  EXPECT_EQ(exit_code_of(beside, Engine::underkeel), 0) << messages(beside);
  EXPECT_TRUE(beside.deepspeed.at(Phase::step, Space::device).has_value());
}

TEST(Document, ThatTheTrainerRefusesFailsThere) {
  Files files;
  files.write("ds_config.json",
              "{\"bf16\": {\"enabled\": true}, \"zero_optimization\": "
              "{\"stage\": 2},}");
  files.write("train.yaml", "finetuning_type: full\nbf16: true\ndataset: d\n");
  files.write("model.json", model_json(qwen_half));
  files.question.device_budget_bytes = std::int64_t{80} << 30;

  const Diagnosis diagnosis = files.diagnose();

  ASSERT_EQ(found(diagnosis, "json-not-strict").size(), 1u) << messages(diagnosis);
  EXPECT_EQ(found(diagnosis, "json-not-strict")[0].severity, Severity::error);
  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::runs);
}

TEST(Document, WithoutAModelSaysThatMemoryIsNotJudged) {
  Files files;
  files.write("train.yaml", "finetuning_type: full\nbf16: true\ndataset: d\n");

  EXPECT_EQ(found(files.diagnose(), "memory-without-model").size(), 1u);
}

TEST(Document, FollowsWhatTheRunFileNames) {
  Files files;
  const auto config = files.write("ds.json", R"({"zero_optimization": {"stag": 3}})");
  files.question.paths.clear();
  files.write("train.yaml",
              "model_name_or_path: m\noutput_dir: o\nfinetuning_type: full\n"
              "dataset: d\ndeepspeed: " +
                  config.string() + "\n");

  const auto all = found(files.diagnose(), "key-misspelt");

  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].file, "ds.json");
}

TEST(Document, ThatMayNotBeReadIsTold) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 1})");
  std::filesystem::create_directory(files.at("closed"));
  std::filesystem::permissions(files.at("."), std::filesystem::perms(0755));
  for (const char* name : {"ds_config.json", "closed"})
    std::filesystem::permissions(files.at(name), std::filesystem::perms::none);
  files.question.paths = {files.at("ds_config.json"), files.at("closed"), files.at("closed/in")};

  // Root may read everything; nobody may not.
  const bool is_root = geteuid() == 0;
  ASSERT_EQ(is_root ? seteuid(65534) : 0, 0);
  const Diagnosis diagnosis = files.diagnose();
  ASSERT_EQ(is_root ? seteuid(0) : 0, 0);
  for (const char* name : {"ds_config.json", "closed"})
    std::filesystem::permissions(files.at(name), std::filesystem::perms::owner_all);

  EXPECT_EQ(found(diagnosis, "file-no-permission").size(), 3u) << messages(diagnosis);
  EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 2);
}

TEST(Document, BehindLinksInALoopIsTold) {
  Files files;
  std::filesystem::create_symlink(files.at("b.yaml"), files.at("a.yaml"));
  std::filesystem::create_symlink(files.at("a.yaml"), files.at("b.yaml"));
  files.question.paths = {files.at("a.yaml")};

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(found(diagnosis, "file-link-loop").size(), 1u) << messages(diagnosis);
}

TEST(Document, ThatCouldNotBeParsedIsComparedWithNothing) {
  const std::string run = "model_name_or_path: model\nfinetuning_type: full\nbf16: true\n";
  for (const std::string more : {"output_dir: &out a\nrun_name: *out\n", "bf16: true\n",
                                 "a:\n\tb: 1\n", "---\nlearning_rate: 1.0\n"}) {
    Files files;
    files.write("model.json", model_json(llama_7b));
    files.write("train.yaml", run + more);
    files.write("ds.json", R"({"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto",
                "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})");

    const Diagnosis diagnosis = files.diagnose();

    EXPECT_EQ(found(diagnosis, "unread-not-compared").size(), 1u) << messages(diagnosis);
    EXPECT_TRUE(found(diagnosis, "run-value-differs").empty()) << messages(diagnosis);
    EXPECT_TRUE(diagnosis.alternatives.empty()) << more;
    EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::fails) << more;
    // PyYAML reads anchors: of DeepSpeed nothing is known then.
    const bool has_anchor = more.find('&') != std::string::npos;
    EXPECT_EQ(found(diagnosis, "yaml-not-read-here").size(), has_anchor ? 1u : 0u);
    EXPECT_EQ(diagnosis.deepspeed.verdict, has_anchor ? Verdict::unknown : Verdict::fails) << more;
  }
}

}  // namespace
}  // namespace underkeel::doctor
