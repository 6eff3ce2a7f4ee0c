// Data files and descriptions of them that are given by themselves.

#include "doctor/data_rules.h"

#include <gtest/gtest.h>

#include "doctor/files.h"

namespace underkeel::doctor {
namespace {

Diagnosis of_file(std::string_view name, std::string_view text) {
  Files files;
  files.write(name, text);
  return files.diagnose();
}

void expect_refused(const Diagnosis& diagnosis, std::string_view id, std::string_view part) {
  EXPECT_NE(says(diagnosis, id).find(part), std::string::npos) << says(diagnosis, id);
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 2) << part;
  EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 2) << part;
}

const std::string record = R"({"instruction": "a", "input": "", "output": "b"})";

TEST(DataFile, IsRefusedWhereItIsCutShort) {
  expect_refused(of_file("data.json", "[" + record + ", {\"instruction\": \"c"), "data-unusable",
                 "the file ends at byte");
  expect_refused(of_file("data.json", "[" + record + ","), "data-unusable",
                 "after 1 whole records");
  expect_refused(of_file("data.json", R"([{"q": "a", "a": "b"}, {"q")"), "data-cut-short",
                 "does not end with `]`");
  expect_refused(of_file("data.json", "["), "data-unusable", "after 0 whole records");
  expect_refused(of_file("data.jsonl", record + "\n" + record.substr(0, 20)), "data-unusable",
                 "1 broken");
  // Words of a log in a text do not make it one.
  expect_refused(of_file("data.json", "[{\"instruction\": \"what is a ValueError?\", \"outp"),
                 "data-unusable", "the file ends at byte");
}

TEST(DataFile, IsRefusedForWhatItsNameSays) {
  expect_refused(of_file("data.JSONL", record + "\n" + record + "\n"), "data-unusable",
                 "the name ends in `.JSONL`; small letters are wanted");
  expect_refused(of_file("data.Json", "[" + record + "]"), "data-unusable", "`.json`");
  expect_refused(of_file("data.txt", "[" + record + "]"), "data-unusable", "a JSON list");
  expect_refused(of_file("data.jsonl", "hello\nthere\n"), "data-unusable",
                 "no record is well formed");
  expect_refused(of_file("data.csv", "instruction,output\n\"a,b\n"), "data-unusable",
                 "inside the quoted value");
}

TEST(DataFile, IsRefusedWhenItHoldsNothing) {
  for (const char* name : {"data.jsonl", "data.json", "data.csv", "ds_config.json", "train.yaml",
                           "model.safetensors", "model.safetensors.index.json"})
    for (const char* text : {"", " \n\n", "\xEF\xBB\xBF"})
      expect_refused(of_file(name, text), "file-empty", "the file is empty");
  EXPECT_EQ(exit_code_of(of_file("run.log", ""), Engine::underkeel), 0);
  expect_refused(of_file("data.json", "[]"), "data-without-records", "no record");
}

TEST(DataFile, IsReadWhateverItsColumnsAre) {
  const std::string sound[] = {
      record + "\n" + record + "\n",
      R"([{"instruction": "a", "output": "b"}, {"instruction": "c", "output": "d"}])",
      R"([{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
          {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}])",
      R"([{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
          {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}])",
      R"([{"text": "a"}, {"text": "b"}])"};
  for (const std::string& text : sound) {
    const Diagnosis diagnosis = of_file("data.json", text);
    EXPECT_NE(says(diagnosis, "data-readable").find("2 of 2 records"), std::string::npos) << text;
    EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0) << messages(diagnosis);
  }
  const Diagnosis other = of_file("data.json", R"([{"q": "a", "a": "b"}])");
  EXPECT_NE(says(other, "data-columns-unknown").find("`a`, `q`"), std::string::npos)
      << messages(other);
  EXPECT_EQ(exit_code_of(other, Engine::underkeel), 0);
}

TEST(DataFile, SaysWhatIsWrongWithItsRecords) {
  expect_refused(of_file("data.json", R"({"data": [{"instruction": "a", "output": "b"}]})"),
                 "data-unusable", "the file has to be that list itself");
  expect_refused(of_file("data.csv", "instruction;output\na;b\n"), "data-unusable",
                 "values are separated by commas");
  const Diagnosis mixed =
      of_file("data.json", "[" + record + ",\n{\"instruction\": 1, \"output\": \"b\"}]");
  EXPECT_NE(says(mixed, "data-partly-usable").find("1 of 2 records"), std::string::npos)
      << messages(mixed);
  EXPECT_NE(says(mixed, "data-partly-usable").find("line 2"), std::string::npos);
  EXPECT_EQ(exit_code_of(mixed, Engine::underkeel), 0);
}

TEST(DataFile, ThatIsPackedIsRefused) {
  const std::string bytes("\x1f\x8b\x08\x00\x00\x00\xff", 7);
  for (const char* name : {"data.jsonl.gz", "data.parquet", "data.arrow", "data.json"})
    EXPECT_EQ(exit_code_of(of_file(name, bytes), Engine::underkeel), 2) << name;
  const Diagnosis other = of_file("rng_state.pth", bytes);
  EXPECT_FALSE(found(other, "file-unrecognised").empty());
  EXPECT_EQ(exit_code_of(other, Engine::underkeel), 0);
}

TEST(DataFile, OfManyBytesIsLookedAtFromBothEnds) {
  std::string text;
  while (text.size() < most_record_bytes + 1000) text += record + "\n";
  const Diagnosis sound = of_file("data.jsonl", text);
  EXPECT_NE(says(sound, "data-begins-well").find("first 1000 records"), std::string::npos)
      << messages(sound);
  EXPECT_EQ(exit_code_of(sound, Engine::underkeel), 0);

  expect_refused(of_file("data.jsonl", text + record.substr(0, 20)), "data-cut-short",
                 "does not end with `}`");
  std::string list = "[" + record;
  while (list.size() < most_record_bytes + 1000) list += "," + record;
  expect_refused(of_file("data.json", list), "data-cut-short", "does not end with `]`");
}

TEST(DataDescription, IsRefusedForItsKeysAndItsFiles) {
  struct Wrong {
    const char* text;
    const char* part;
  };
  const Wrong wrong[] = {
      {R"({"a": {"file_name": "data.jsonl", "colums": {}}})", "nearest is `columns`"},
      {R"({"a": {"file_name": "data.jsonl", "columns": {"promt": "q"}}})", "nearest is `prompt`"},
      {R"({"a": {"file_name": "gone.jsonl"}})", "there is no such file"},
      {R"({"a": {"filename": "data.jsonl"}})", "nearest is `file_name`"},
      {R"({"a": {"file_name": "data.jsonl", "columns": {"prompt": "question", "response": "output"}}})",
       "the column `question` is in no record"},
      {R"({"a": "data.jsonl"})", "entry `a` is not an object"},
      {R"({"a": {"file_name": "data.jsonl"}, "b": {"file_name": "data.jsonl", "num_samples": 0}})",
       "`num_samples` is not a number"},
      {R"({"a": {"file_name": "broken.jsonl"}})", "1 broken"},
      {R"({"a": {"file_name": "data.JSONL"}})", "small letters"}};
  for (const Wrong& each : wrong)
    for (const bool is_folder : {false, true}) {
      Files files;
      files.write("set/data.jsonl", record + "\n" + record + "\n");
      files.write("set/data.JSONL", record + "\n");
      files.write("set/broken.jsonl", record + "\n{\"instruction\n");
      files.write("set/dataset_info.json", each.text);
      files.question.paths = {files.at(is_folder ? "set" : "set/dataset_info.json")};

      const Diagnosis diagnosis = files.diagnose();

      expect_refused(diagnosis, "data-unusable", each.part);
    }
}

TEST(DataDescription, UnderAnyNameAndCutShort) {
  Files files;
  files.write("sets.json", R"({"a": {"file_name": "gone.jsonl"}})");
  expect_refused(files.diagnose(), "data-unusable", "there is no such file");
  expect_refused(of_file("dataset_info.json", R"({"a": {"file_name": "data)"), "file-broken",
                 "not closed");
}

TEST(DataDescription, ReadsTheDataThatItDescribes) {
  Files files;
  files.write("set/qa.json", R"([{"q": "a", "a": "b"}, {"q": "c", "a": "d"}])");
  files.write("set/plain.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  files.write("set/dataset_info.json",
              R"({"qa": {"file_name": "qa.json", "columns": {"prompt": "q", "response": "a"}},
                  "plain": {"file_name": "plain.jsonl", "columns": {"prompt": "text"}},
                  "far": {"hf_hub_url": "some/where"}})");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_NE(says(diagnosis, "data-described").find("2 of 3 data sets"), std::string::npos)
      << messages(diagnosis);
  EXPECT_NE(says(diagnosis, "data-described").find("4 records"), std::string::npos);
  EXPECT_NE(says(diagnosis, "data-elsewhere").find("`far`"), std::string::npos);
  EXPECT_TRUE(found(diagnosis, "data-columns-unknown").empty());
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0);
}

TEST(DataDescription, IsCheckedForTheSetsThatTheRunNames) {
  Files files;
  files.write("data.jsonl", record + "\n");
  files.write("dataset_info.json", R"({"mine": {"file_name": "data.jsonl"},
                                       "other": {"file_name": "gone.jsonl"}})");
  files.write("train.yaml", "model_name_or_path: m\nfinetuning_type: full\ndataset: mine\n");
  EXPECT_TRUE(found(files.diagnose(), "data-unusable").empty());
  files.question.changes = {"dataset=other"};
  EXPECT_FALSE(found(files.diagnose(), "data-unusable").empty());
}

}  // namespace
}  // namespace underkeel::doctor
