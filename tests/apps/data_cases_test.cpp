// Data sets that go wrong in practice, as a user meets them: through `plan --data`, `train` and `doctor`.

#include <array>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "support/case.h"

namespace underkeel::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr std::string_view pairs =
    R"({"instruction": "Hoist the flag", "input": "", "output": "aye"}
{"instruction": "Strike it", "input": "", "output": "no"}
)";
constexpr std::string_view talks =
    R"({"messages": [{"role": "user", "content": "Ahoy"}, {"role": "assistant", "content": "Ahoy to you"}]}
{"messages": [{"role": "user", "content": "3+4?"}, {"role": "assistant", "content": "7"}]}
)";
constexpr std::string_view tags =
    R"("tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"})";

/// A run of stage sft on the data set `log`, to be described and written by the test.
class DataCases : public testing::Test {
 protected:
  DataCases() : made_(complete_case("end_token_of_template")) {}

  void describe(const std::string& entry) {
    write_text(made_.data / "dataset_info.json", "{\"log\": " + entry + "}");
  }
  void write(const std::string& name, std::string_view content) {
    describe(R"({"file_name": ")" + name + "\"}");
    write_text(made_.data / name, content);
  }
  void write_talks(const std::string& entry) {
    write_text(made_.data / "talk.jsonl", talks);
    describe(entry);
  }

  std::string words(const std::string& more) const {
    return made_.run_file.string() + " dataset=log underkeel.threads=1 " + more;
  }
  Ran plan(const std::string& more = "") const {
    return run_underkeel("plan --data " + words(more));
  }
  Ran train(const std::string& more = "") const { return run_underkeel("train " + words(more)); }
  Ran doctor(const std::string& more = "") const {
    return run_underkeel("doctor --json " + words(more));
  }

  /// All three commands refuse, with `what` and `fix`, and nothing has been trained.
  void expect_refused(const std::string& what, const std::string& fix) const {
    for (const Ran& ran : {plan(), train()}) {
      EXPECT_EQ(ran.exit_code, 2) << ran.error;
      EXPECT_THAT(ran.error, AllOf(HasSubstr(what), HasSubstr(fix)));
    }
    const Ran told = doctor();
    EXPECT_EQ(told.exit_code, 2) << told.out;
    bool is_found = false;
    const Json report = Json::parse(told.out);
    for (const Json& finding : report.at("findings")) {
      if (finding.at("id") != "data-unusable") continue;
      is_found = true;
      EXPECT_THAT(finding.at("message").get<std::string>(), HasSubstr(what));
      EXPECT_THAT(finding.at("fix").get<std::string>(), HasSubstr(fix));
    }
    EXPECT_TRUE(is_found) << told.out;
    EXPECT_FALSE(std::filesystem::exists(made_.output / "training_args.json"));
  }

  Json finding(const std::string& id, const std::string& more = "") const {
    const Json report = Json::parse(doctor(more).out);
    for (const Json& one : report.at("findings"))
      if (one.at("id") == id) return one;
    return {};
  }

  RunnableCase made_;
};

TEST_F(DataCases, WithAnUnknownKeyAreRefusedWithTheKeyThatIsMeant) {
  const std::string file = R"("file_name": "talk.jsonl", )";
  const std::string columns = R"("columns": {"messages": "messages"}, )";
  const std::string right = R"("formatting": "sharegpt", )" + columns;
  struct Fault {
    std::string entry;
    std::string what;
    std::string fix;
  };
  const std::vector<Fault> faults = {
      {file + R"("format": "sharegpt", )" + columns + std::string(tags),
       "unknown key `format` in entry `log`, nearest is `formatting`", "write `formatting`"},
      {file + R"("FORMATTING": "sharegpt", )" + columns + std::string(tags),
       "unknown key `FORMATTING` in entry `log`, nearest is `formatting`", "write `formatting`"},
      {R"("filename": "talk.jsonl")",
       "unknown key `filename` in entry `log`, nearest is `file_name`", "write `file_name`"},
      {file + R"("formatting": "sharegpt", "colums": {"messages": "messages"})",
       "nearest is `columns`", "write `columns`"},
      {file + R"("formatting": "sharegpt", "messages": "messages", )" + std::string(tags),
       "unknown key `messages` in entry `log`, which belongs into `columns`", "known are"},
      {file +
           R"("formatting": "sharegpt", "columns": {"messages": "messages", "role_tag": "role"})",
       "unknown key `role_tag` in columns of `log`, which belongs into `tags`", "known are"},
      {file + right + R"("tags": {"role": "role", "content_tag": "content"})",
       "unknown key `role` in tags of `log`, nearest is `role_tag`", "write `role_tag`"},
      {file + right + R"("template": "chatml", "formating": "x", )" + std::string(tags),
       "2 unknown keys in entry `log`; `formating`, nearest is `formatting`; `template`",
       "write `formatting`"},
      {file + R"("formatting": "ShareGPT", )" + columns + std::string(tags),
       "formatting `ShareGPT` of data set `log` is not known", "write alpaca, sharegpt or openai"},
      {file + R"("split": "test", )" + right + std::string(tags),
       "`split` of data set `log` is `test`", "name the file of that split"},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.entry);
    write_talks("{" + fault.entry + "}");
    expect_refused(fault.what, fault.fix);
  }
  write_talks("{" + file + right + std::string(tags) + "}");
  const Ran good = plan();
  EXPECT_EQ(good.exit_code, 0) << good.error;
  EXPECT_THAT(good.out, HasSubstr("2 records, 2 usable (0 empty), 0 dropped, 0 broken"));
}

TEST_F(DataCases, WhoseDescriptionNamesOtherColumnsOrTagsAreRefusedWithWhatIsThere) {
  struct Fault {
    std::string entry;
    std::string what;
    std::string fix;
  };
  const std::string columns = R"("formatting": "sharegpt", "columns": {"messages": "messages"})";
  for (const Fault& fault : std::vector<Fault>{
           {"", "the column `instruction` is in no record; the first one has `messages`",
            R"("formatting": "sharegpt")"},
           {R"(, "formatting": "sharegpt")",
            "the column `conversations` is in no record; the first one has `messages`",
            R"("columns": {"messages": "messages"})"},
           {", " + columns, "message 1 has no text `from`; it has `content`, `role`",
            "look at formatting, columns and tags"},
           {", " + columns + R"(, "tags": {"role_tag": "role", "content_tag": "value",
               "user_tag": "user", "assistant_tag": "assistant"})",
            "message 1: `value` is missing; it has `content`, `role`", "columns and tags"},
           {", " + columns + R"(, "tags": {"role_tag": "role", "content_tag": "content",
               "user_tag": "human", "assistant_tag": "gpt"})",
            "message 1 is of `user` where human is due", "columns and tags"},
       }) {
    SCOPED_TRACE(fault.entry);
    write_talks(R"({"file_name": "talk.jsonl")" + fault.entry + "}");
    expect_refused(fault.what, fault.fix);
  }
  for (const auto& [record, what, fix] : std::vector<std::array<std::string, 3>>{
           {R"({"question": "a", "answer": "b"})", "the first one has `answer`, `question`",
            R"("columns": {"prompt": "question", "response": "answer"})"},
           {R"({"prompt": "a", "completion": "b"})", "the first one has `completion`, `prompt`",
            R"("columns": {"prompt": "prompt", "response": "completion"})"},
           {R"({"instruction": "a", "input": "b"})", "the column `output` is in no record",
            R"("columns": {"response": "..."})"}}) {
    SCOPED_TRACE(record);
    write("log.jsonl", record);
    expect_refused(what, fix);
  }
}

TEST_F(DataCases, WhoseContentIsNotWhatTheNameSaysAreRefused) {
  const std::string list =
      R"([{"instruction": "Add 0 and 1.", "input": "", "output": "1"}, {"instruction": "Add 1 and 2.", "input": "", "output": "3"}])";
  const std::string bom = "\xEF\xBB\xBF";
  struct Fault {
    std::string name;
    std::string content;
    std::string what;
    std::string fix;
  };
  const std::vector<Fault> faults = {
      {"log.txt", list, "content is a JSON list, name ends in .txt", "rename it to end in .json"},
      {"log.txt", Json::parse(list).dump(1), "content is a JSON list, name ends in .txt", ".json"},
      {"log.txt", bom + list, "content is a JSON list, name ends in .txt", ".json"},
      {"log.txt", R"(["a", "b"])", "content is a JSON list, name ends in .txt", ".json"},
      {"log.csv", list, "content is a JSON list, name ends in .csv", "rename it to end in .json"},
      {"log.txt", std::string(pairs), "content is one JSON object a line, name ends in .txt",
       ".jsonl"},
      {"log.txt", R"({"instruction": ")" + std::string(9000, 'x') + R"(", "output": "b"})" + "\n",
       "content is one JSON object a line, name ends in .txt", ".jsonl"},
      {"log.jsonl", Json::parse(pairs.substr(0, pairs.find('\n'))).dump(2),
       "content is JSON objects of several lines, name ends in .jsonl", "writes one object a line"},
      {"log.txt", Json::parse(pairs.substr(0, pairs.find('\n'))).dump(2),
       "content is JSON objects of several lines, name ends in .txt", "writes one object a line"},
      {"log.json", "{\n \"data\": " + list + "\n}\n", "JSON objects of several lines",
       "the records seem to be a list under `data`"},
      {"log.json", R"({"data": )" + list + "}", "the first one has `data`",
       "the records seem to be a list under `data`"},
      {"log.json", std::string("\xFF\xFE[\0", 4), "content is UTF-16 text, name ends in .json",
       "iconv"},
      {"log.json", std::string("\xFF\xFE\0\0[\0\0\0", 8), "content is UTF-32 text",
       "iconv -f UTF-32"},
      {"log.jsonl", std::string("{\0\"\0a\0", 6),
       "content is UTF-16 text without a byte-order mark, name ends in .jsonl",
       "iconv -f UTF-16LE"},
      {"log.csv", std::string("\0\0\0a\0\0\0,", 8), "content is UTF-32 text without", "UTF-32BE"},
      {"log.jsonl", "\n<!DOCTYPE html>\n<html></html>\n",
       "content is a web page (HTML), name ends in .jsonl", "download the file itself"},
      {"log.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 123456\n",
       "content is a Git LFS pointer, not the file itself, which has 123,456 bytes",
       "git lfs pull"},
      {"log.json", std::string("\x1F\x8B\x08\0", 4), "content is compressed by gzip", "gunzip"},
      {"log.csv", std::string("PK\x03\x04xl", 6), "content is a zip archive", "write a .csv"},
      {"log.jsonl", "PAR1....", "content is Parquet, name ends in .jsonl", "to_json"},
      {"log.jsonl", "instruction,output\na,b\n", "log.jsonl:1, column 1: broken",
       "no record is well formed"},
      {"log.jsonl", "{'instruction': 'a', 'output': 'b'}\n", "log.jsonl:1, column 2: broken",
       "no record is well formed"},
      {"log.json", "", "none of 0 records is usable", "the files of the data sets are empty"},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name + ": " + fault.content.substr(0, 60));
    write(fault.name, fault.content);
    expect_refused(fault.what, fault.fix);
  }
  // Accepted under any of the names for JSON, whatever comes first.
  for (const auto& [name, content] :
       std::vector<std::array<std::string, 2>>{{"log.json", list},
                                               {"log.jsonl", list},
                                               {"log.json", std::string(pairs)},
                                               {"log.json", bom + list},
                                               {"log.jsonl", bom + std::string(pairs)}}) {
    write(name, content);
    const Ran ran = plan();
    EXPECT_EQ(ran.exit_code, 0) << name << "\n" << ran.error;
    EXPECT_THAT(ran.out, HasSubstr("2 records, 2 usable")) << name;
    if (content.starts_with(bom)) {
      EXPECT_THAT(ran.out, HasSubstr("skipped the byte-order mark"));
    }
  }
}

TEST_F(DataCases, WhoseDescriptionIsWrongAreRefusedWithItsLine) {
  write_text(made_.data / "talk.jsonl", talks);
  write_text(made_.data / "TALK.JSONL", talks);
  const std::string info = (made_.data / "dataset_info.json").string();
  const auto refuses = [&](const std::string& entry, const std::string& what,
                           const std::string& where, const std::string& fix) {
    SCOPED_TRACE(entry);
    write_text(made_.data / "dataset_info.json", "{\"other\": {},\n\n \"log\": " + entry + "}");
    expect_refused(what, fix);
    EXPECT_THAT(plan().error, HasSubstr(where));
    for (const Json& finding : Json::parse(doctor().out).at("findings"))
      if (finding.at("id") == "data-unusable") {
        EXPECT_THAT(finding.at("message").get<std::string>(), HasSubstr(where));
      }
  };
  refuses(R"({"file_name": ""})", "`file_name` of data set `log` is empty", info + ":3: log",
          "a path below dataset_dir");
  refuses(R"({"file_name": []})", "names no `file_name`", info + ":3: log", "NAME.jsonl");
  refuses(R"({"file_name": "none.jsonl"})", "there is no such file", info + ":3: log",
          "dataset_dir says where");
  refuses(R"({"file_name": "TALK.JSONL"})", "the name ends in `.JSONL`; small letters are wanted",
          info + ":3: log", "rename it to TALK.jsonl");
  // OpenAI's messages under an entry without tags.
  const std::string openai = R"("tags": {"role_tag": "role", "content_tag": "content")";
  refuses(R"({"file_name": "talk.jsonl", "formatting": "sharegpt"})",
          "the column `conversations` is in no record", info + ":3: log",
          R"("columns": {"messages": "messages"}, )" + openai);
  refuses(
      R"({"file_name": "talk.jsonl", "formatting": "sharegpt", "columns": {"messages": "messages"}})",
      "message 1 has no text `from`; it has `content`, `role`; messages of OpenAI's kind want " +
          openai,
      "talk.jsonl:1", "columns and tags");
}

TEST_F(DataCases, WithoutADescriptionAreRefusedWithOneToWrite) {
  write("log.jsonl", pairs);
  std::filesystem::remove(made_.data / "dataset_info.json");
  for (const auto& entry : std::filesystem::directory_iterator(made_.data))
    if (entry.path().filename() != "log.jsonl") std::filesystem::remove(entry.path());

  expect_refused("there is no dataset_info.json; the folder holds 1 data file, the first log.jsonl",
                 R"({"log": {"file_name": "log.jsonl"}})");

  std::filesystem::remove_all(made_.data);
  EXPECT_THAT(plan().error, HasSubstr("dataset_dir is no folder that is there"));
}

TEST_F(DataCases, AreNotReadWithATokenizerThatIsAPointer) {
  write("log.jsonl", pairs);
  write_text(made_.model / "tokenizer.json",
             "version https://git-lfs.github.com/spec/v1\nsize 9\n");

  expect_refused("the content is a Git LFS pointer", "git lfs pull");
}

TEST_F(DataCases, ThatEndInTheMiddleAreRefusedWithTheByteAndWhatIsWholeBefore) {
  const std::string list =
      R"([{"instruction": "Sound.", "input": "", "output": "ten"}, {"instruction": "Again.", "input": "", "output": "nine"}])";
  const auto refused = [&](const std::string& name, const std::string& content,
                           const std::string& what) {
    SCOPED_TRACE(name + " of " + std::to_string(content.size()) + " bytes");
    write(name, content);
    expect_refused(what, "underkeel.skip_broken_records: true");
  };

  refused("log.json", list.substr(0, 103),
          "log.json:1: broken, the file ends at byte 103, inside a text, after 1 whole records");
  refused("log.json", list.substr(0, 58),
          "log.json:1: broken, the file ends at byte 58, inside a record, after 1 whole records");
  refused("log.json", "\xEF\xBB\xBF" + list.substr(0, 103),
          "the file ends at byte 106, inside a text, after 1 whole records");
  refused("log.json", list.substr(0, 56) + ",\n" + list.substr(58, 20),
          "log.json:2: broken, the file ends at byte");
  refused("log.jsonl", std::string(pairs.substr(0, pairs.size() - 8)),
          "log.jsonl:2, column 51: broken");
  refused("log.csv", "instruction,input,output\na,,b\nc,,\"d\n",
          "the file ends inside the quoted value of the record from line 3");
  // A long text that does not end is not told in full.
  write("log.jsonl",
        std::string(pairs) + R"({"instruction": "a", "output": ")" + std::string(5000, 'y'));
  const Ran ran = plan();
  EXPECT_THAT(ran.error, HasSubstr("log.jsonl:3, column "));
  EXPECT_LT(ran.error.size(), 800u) << ran.error;
}

TEST_F(DataCases, OfMixedTypesAreReportedAsAWholeAndRefusedForTheBrokenLine) {
  const std::string lines =
      R"({"instruction":"a","input":"","output":"b"}
{"instruction":"a","input":"","output":7}
{"instruction":"a","input":""}
{"instruction":"a","input":"","output":""}
{"instruction":"a","input":"","output":"b"
{"instruction":"a","input":"","output":"b","id":9}
{"instruction":"a","input":null,"output":"b"}
)";
  write("log.jsonl", lines);

  expect_refused("7 records, 4 usable (1 empty), 2 dropped, 1 broken",
                 "underkeel.skip_broken_records: true");
  const Ran refused = plan();
  for (const char* line :
       {"log.jsonl:2: dropped, `output` is a number", "log.jsonl:3: dropped, `output` is missing",
        "log.jsonl:5, column 43: broken"})
    EXPECT_THAT(refused.error, HasSubstr(line));
  const Ran taken = plan("underkeel.skip_broken_records=true template=empty");
  EXPECT_EQ(taken.exit_code, 0) << taken.error;
  EXPECT_THAT(taken.out, AllOf(HasSubstr("training: 4 samples"), HasSubstr("log.jsonl:4")));
}

TEST_F(DataCases, OfOtherMixedTypesDropTheRecordAndKeepTheRest) {
  for (const auto& [record, reason] : std::vector<std::array<std::string, 2>>{
           {R"({"instruction": ["a"], "input": "", "output": "b"})", "`instruction` is a list"},
           {R"({"instruction": "a", "input": 5, "output": "b"})", "`input` is a number"},
           {R"({"instruction": "a", "input": "", "output": {"text": "b"}})",
            "`output` is an object"},
           {R"({"instruction": "a", "input": "", "output": true})", "`output` is true or false"}}) {
    write("log.jsonl", std::string(pairs) + record + "\n");
    const Ran ran = plan();
    EXPECT_EQ(ran.exit_code, 0) << ran.error;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("3 records, 2 usable (0 empty), 1 dropped, 0 broken"),
                               HasSubstr("log.jsonl:3: dropped, " + reason)));
  }
  write("log.csv", "instruction,input,output\nHoist,,aye\nStrike,,\n");
  EXPECT_THAT(plan().out, HasSubstr("log.csv:3: dropped, `output` is null"));
}

/// Conversations whose turns have so many tokens under `chatml`: 19 around a prompt, 2 behind an answer.
std::string talk_of(const std::vector<std::pair<std::size_t, std::size_t>>& turns) {
  Json messages = Json::array();
  for (const auto& [prompt, answer] : turns) {
    messages.push_back({{"role", "user"}, {"content", std::string(prompt - 19, 'q')}});
    messages.push_back({{"role", "assistant"}, {"content", std::string(answer - 2, 'a')}});
  }
  return Json{{"messages", messages}}.dump() + "\n";
}

TEST_F(DataCases, WhoseAnswersAreEmptyAreNotToldOfALargerCutOff) {
  const auto pair_of = [](std::size_t question, std::string_view answer) {
    return Json{{"instruction", std::string(question, 'q')}, {"input", ""}, {"output", answer}}
               .dump() +
           "\n";
  };
  write("log.jsonl", pair_of(4, "aye") + pair_of(4, "") + pair_of(4, ""));

  const Ran planned = plan("template=empty cutoff_len=64");
  const Json told = finding("data-unanswered", "template=empty cutoff_len=64");

  EXPECT_THAT(planned.out,
              HasSubstr("2 samples have no answer in the data, whatever cutoff_len is"));
  ASSERT_FALSE(told.is_null());
  EXPECT_THAT(
      told.at("message").get<std::string>(),
      AllOf(HasSubstr("training samples without an answer to train on in the data: 2 of 3"),
            HasSubstr("log.jsonl:2"), HasSubstr("log.jsonl:3"), Not(HasSubstr("log.jsonl:1"))));
  EXPECT_THAT(told.at("fix").get<std::string>(), Not(HasSubstr("cutoff_len")));
  EXPECT_TRUE(finding("data-cut", "template=empty cutoff_len=64").is_null());

  // Cut and empty ones side by side: each is told of its own cause.
  write("log.jsonl", pair_of(4, "aye") + pair_of(900, "") + pair_of(9000, "no"));
  const std::string cut = "template=empty cutoff_len=64";
  EXPECT_THAT(finding("data-unanswered", cut).at("message").get<std::string>(),
              AllOf(HasSubstr("log.jsonl:2"), Not(HasSubstr("log.jsonl:3"))));

  // Nothing but empty answers, one of a long question: no cut-off is advised.
  write("log.jsonl", pair_of(4, "") + pair_of(900, ""));
  const Ran nothing = train(cut);
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.error,
              AllOf(HasSubstr("all answers are empty"), Not(HasSubstr("keeps every sample"))));
}

TEST_F(DataCases, OfTrainingAndOfEvaluationAreToldApart) {
  const auto pair_of = [](std::size_t answer) {
    return Json{{"instruction", "q"}, {"input", ""}, {"output", std::string(answer, 'a')}}.dump() +
           "\n";
  };
  write_text(made_.data / "log.jsonl", pair_of(4) + pair_of(4) + pair_of(4));
  write_text(made_.data / "held.jsonl", pair_of(4) + pair_of(900));
  write_text(made_.data / "dataset_info.json",
             R"({"log": {"file_name": "log.jsonl"}, "held": {"file_name": "held.jsonl"}})");
  const std::string keys = "template=empty cutoff_len=64 eval_dataset=held eval_strategy=";

  for (const std::string when : {"no", "epoch"}) {
    const Json training = finding("data-longest", keys + when);
    EXPECT_THAT(training.at("message").get<std::string>(),
                AllOf(HasSubstr("training samples: 3;"), Not(HasSubstr("64 tokens")),
                      Not(HasSubstr("90"))));
    EXPECT_THAT(
        finding("data-longest-evaluation", keys + when).at("message").get<std::string>(),
        AllOf(HasSubstr("evaluation samples: 2; the longest has 64 tokens"), HasSubstr("8 x 64")));
  }
  EXPECT_THAT(finding("data-cut", keys + "no").at("message").get<std::string>(),
              AllOf(HasSubstr("evaluation samples: 1 of 2 whole"),
                    HasSubstr("answers: 1 of 2 whole, 1 without the end, 0 lost"),
                    HasSubstr("held.jsonl:2 (")));
  EXPECT_THAT(finding("data-cut", "template=empty cutoff_len=3 val_size=0.4")
                  .at("message")
                  .get<std::string>(),
              HasSubstr("samples, held-out ones among them: 0 of 3 whole"));
  // Only the training's own samples say whether there is something to train on.
  write_text(made_.data / "log.jsonl", pair_of(0));
  const Ran refused = train(keys + "no");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error,
              AllOf(HasSubstr("nothing to train on"), Not(HasSubstr("keeps every"))));
}

TEST_F(DataCases, ThatAreDescribedStandForTheirFilesForBothEngines) {
  write("log.jsonl", pairs);
  write_text(made_.data / "dataset_info.json",
             R"({"log": {"file_name": "log.jsonl"}, "held": {"file_name": "held.jsonl"}})");
  const std::string shape = (made_.data.parent_path() / "data-shape.json").string();
  write_text(shape, R"({"held": {"samples": 1000, "tokens": 48}})");
  const std::string keys = "template=empty cutoff_len=64 eval_dataset=held eval_strategy=epoch";

  const Json alone = finding("data-unusable", keys);
  const Json described = finding("data-unusable", keys + " " + shape);
  ASSERT_FALSE(alone.is_null());
  EXPECT_TRUE(described.is_null()) << described;
  for (const bool has_file : {false, true}) {
    if (has_file) write_text(made_.data / "held.jsonl", pairs);
    const std::string words = keys + " " + shape;
    EXPECT_THAT(finding("data-longest-evaluation", words).at("message").get<std::string>(),
                AllOf(HasSubstr("evaluation samples: 1000; the longest has 48 tokens"),
                      HasSubstr("8 x 48")));
    EXPECT_THAT(finding("evaluation-of-all-samples", words).at("message").get<std::string>(),
                HasSubstr("1000"));
    EXPECT_THAT(finding("underkeel-evaluation-logits", words).at("message").get<std::string>(),
                HasSubstr("(384 rows)"));
  }
  write_text(shape, R"({"log": {"samples": 500, "tokens": 40}})");
  EXPECT_THAT(finding("data-longest", "template=empty " + shape).at("message").get<std::string>(),
              HasSubstr("training samples: 500; the longest has 40 tokens"));
}

TEST_F(DataCases, WhoseAnswersTheCutOffRemovesAreCountedAndNamed) {
  std::string lines;
  for (const auto& turns :
       std::vector<std::vector<std::pair<std::size_t, std::size_t>>>{{{39, 12}},
                                                                     {{2030, 7}},
                                                                     {{8219, 64}},
                                                                     {{79, 30}, {49, 22}},
                                                                     {{119, 102}, {49, 22}},
                                                                     {{29, 8}, {29, 8}},
                                                                     {{17019, 64}}})
    lines += talk_of(turns);
  write("log.jsonl", lines);
  describe(
      R"({"file_name": "log.jsonl", "formatting": "sharegpt", "columns": {"messages": "messages"}, )" +
      std::string(tags) + "}");

  const Ran planned = plan("cutoff_len=128");
  const Json told = finding("data-cut", "cutoff_len=128");

  EXPECT_EQ(planned.exit_code, 0) << planned.error;
  EXPECT_THAT(planned.out,
              HasSubstr("129 trained; longest sample 17,083 before the cut; cutoff_len: "
                        "17083 keeps all"));
  EXPECT_THAT(planned.out, HasSubstr("2 of 7 samples are whole; of 10 answers 5 are whole, 2 lose "
                                     "their end, 3 are lost; of 10 prompts 5 are cut"));
  ASSERT_FALSE(told.is_null());
  EXPECT_THAT(
      told.at("message").get<std::string>(),
      AllOf(HasSubstr("training samples: 2 of 7 whole ("),
            HasSubstr("; without a trained token: 2 ("), HasSubstr("log.jsonl:1"),
            HasSubstr("log.jsonl:6"), HasSubstr("log.jsonl:2 (7 of 7)"),
            HasSubstr("log.jsonl:3 (0 of 64)"), HasSubstr("log.jsonl:4 (30 of 30, 5 of 22)"),
            HasSubstr("log.jsonl:5 (59 of 102, 0 of 22)"), HasSubstr("log.jsonl:7 (0 of 64)"),
            HasSubstr("5 of 10 whole, 2 without the end, 3 lost"),
            HasSubstr("trained tokens: 129")));
  // Tokens from the cache tell the same.
  EXPECT_EQ(finding("data-cut", "cutoff_len=128"), told);
  EXPECT_EQ(told.at("fix"), "cutoff_len: 17083 keeps everything");
  // Every answer of the set lost: there is nothing to train on.
  write_text(made_.data / "log.jsonl", talk_of({{8219, 64}}) + talk_of({{17019, 64}}));
  const Ran nothing = train("cutoff_len=128");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.error,
              AllOf(HasSubstr("none of 2 samples keeps a trained token at cutoff_len 128"),
                    HasSubstr("cutoff_len: 17083 keeps every sample whole")));
}

TEST_F(DataCases, AreSharedOutEvenlyAmongTheRanks) {
  std::string lines;
  for (int i = 0; i < 21; ++i)
    lines += R"({"instruction": "S", "input": "", "output": "x"})"
             "\n";
  write("log.jsonl", lines);

  for (const auto& [more, told] : std::vector<std::array<std::string, 2>>{
           {"--ranks 4",
            "3 micro-batches of 2 on each of 4 ranks, 3 updates; 24 places, so 3 "
            "samples come twice"},
           {"--ranks 4 dataloader_drop_last=true",
            "2 micro-batches of 2 on each of 4 ranks, 2 updates; 16 samples are used and 5 left "
            "out"},
           {"--ranks 5",
            "3 micro-batches of 2 on each of 5 ranks, 3 updates; 30 places, so 9 samples"},
           {"--ranks 3 per_device_train_batch_size=7",
            "1 micro-batch of 7 on each of 3 ranks, 1 update\n"},
           {"--ranks 1", "11 micro-batches of 2 on each of 1 rank, 11 updates\n"}}) {
    const Ran ran = plan(more);
    EXPECT_EQ(ran.exit_code, 0) << ran.error;
    EXPECT_THAT(ran.out, HasSubstr(told)) << more;
  }
}

TEST_F(DataCases, AreNotReadWhereDatasetsHasSavedSamples) {
  write("log.jsonl", pairs);
  const auto folder = made_.folder / "saved";
  const std::string key = "tokenized_path=" + folder.string();

  const Ran made = train(key + " max_steps=1");
  const Ran found = train(key + " max_steps=1 overwrite_output_dir=true");
  write_text(folder / "dataset_dict.json", R"({"splits": ["train"]})");
  const Ran refused = plan(key);

  EXPECT_EQ(made.exit_code, 0) << made.error;
  EXPECT_THAT(made.error + made.out, Not(HasSubstr("tokens from the cache")));
  EXPECT_THAT(found.error + found.out, HasSubstr("tokens from the cache"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("LLaMA-Factory has tokenised (dataset_dict.json)"),
                                   HasSubstr("name another folder")));
}

std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Where LLaMA-Factory lets what lies in one pack or block see each other, that is told once; where it does not, never.
TEST_F(DataCases, InPacksSayOnceWhereLlamaFactoryLetsThemSeeEachOther) {
  write("log.jsonl", std::string(pairs) + std::string(pairs));
  write_text(made_.data / "book.txt", "the tide turns at noon and the ship sails\nso it does\n");
  write_text(made_.data / "dataset_info.json",
             R"({"log": {"file_name": "log.jsonl"},
                 "book": {"file_name": "book.txt", "columns": {"prompt": "text"}}})");
  const std::string separate = "attention: separate per ";
  const std::string differs =
      "would let them see each other, as underkeel.packing_attention: shared does";
  const std::string shared = "see those before them (underkeel.packing_attention: shared)";
  const std::string blocks = "stage=pt dataset=book template=null cutoff_len=16 ";
  struct Told {
    std::string more;
    std::string note;
    std::size_t separately;
    std::size_t differently;
    std::size_t shared;
  };
  for (const Told& told : std::vector<Told>{
           {"packing=true", "LLaMA-Factory's plain packing would", 1, 1, 0},
           {"neat_packing=true", "note: packing: attention: separate per sample", 1, 0, 0},
           {"packing=true underkeel.packing_attention=shared", "samples of a pack", 0, 0, 1},
           {"packing=false", "it fits", 0, 0, 0},
           {blocks, "LLaMA-Factory's blocks would", 1, 1, 0},
           {blocks + "underkeel.packing_attention=shared", "texts of a pack", 0, 0, 1},
           {blocks + "packing=false", "it fits", 0, 0, 0}}) {
    SCOPED_TRACE(told.more);
    const Ran ran = plan(told.more);
    ASSERT_EQ(ran.exit_code, 0) << ran.error;
    EXPECT_THAT(ran.out, HasSubstr(told.note));
    EXPECT_EQ(count_of("note: packing: " + separate, ran.out), told.separately) << ran.out;
    EXPECT_EQ(count_of(differs, ran.out), told.differently) << ran.out;
    EXPECT_EQ(count_of(shared, ran.out), told.shared) << ran.out;
  }
}

// The exported folder stops at the template's token, then at the model's own.
TEST_F(DataCases, AreTrainedIntoAFolderThatStopsWhereAnswersEnd) {
  write("log.jsonl", pairs);
  const auto generation = made_.model / "generation_config.json";
  struct Ending {
    std::string own;  // empty: there is no file
    std::string name;
    Json expected;
  };
  int number = 0;
  for (const Ending& ending :
       std::vector<Ending>{{R"({"eos_token_id": 0})", "chatml", {2, 0}},
                           {R"({"eos_token_id": [0, 1]})", "qwen", {2, 0, 1}},
                           {R"({"eos_token_id": 2})", "chatml", 2},
                           {R"({"eos_token_id": 0})", "default", 0},
                           {R"({"eos_token_id": 0})", "empty", 0},
                           {R"({"temperature": 0.5})", "chatml", {2, 0}},
                           {"", "chatml", {2, 0}}}) {
    SCOPED_TRACE(ending.own + " " + ending.name);
    std::filesystem::remove(generation);
    if (!ending.own.empty()) write_text(generation, ending.own);
    const auto output = made_.folder / ("output-" + std::to_string(number));
    const auto exported = made_.folder / ("exported-" + std::to_string(number++));

    const Ran trained = train("template=" + ending.name +
                              " max_steps=1 save_strategy=steps save_steps=1 "
                              "output_dir=" +
                              output.string());
    const Ran ran =
        run_underkeel("export " + (output / "checkpoint-1").string() + " " + exported.string());

    ASSERT_EQ(trained.exit_code, 0) << trained.error;
    ASSERT_EQ(ran.exit_code, 0) << ran.error;
    for (const auto& folder : {output, exported})
      EXPECT_EQ(Json::parse(read_text(folder / "generation_config.json")).at("eos_token_id"),
                ending.expected)
          << folder;
  }
}

// The end token is a target also where the same token pads: nothing is padded here, and nothing hidden.
TEST_F(DataCases, TrainTheEndTokenAlsoWhereItPads) {
  write("log.jsonl", std::string(pairs) +
                         R"({"instruction": "Say it all", "input": "", "output": "all of it"})");
  struct Ending {
    std::string name;
    int trained;  // 3 + 2 + 9 bytes of answers, and what the template puts behind each
  };
  for (const auto& [name, trained] : std::vector<Ending>{{"default", 14 + 3 * 2},
                                                         {"alpaca", 14 + 3 * 3},
                                                         {"chatml", 14 + 3 * 2},
                                                         {"vicuna", 14 + 3},
                                                         {"empty", 14}}) {
    SCOPED_TRACE(name);
    std::vector<Json> losses;
    for (const std::string pad : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
      auto config = Json::parse(read_text(made_.model / "tokenizer_config.json"));
      config["pad_token"] = pad;
      write_text(made_.model / "tokenizer_config.json", config.dump());
      const auto output = made_.folder / (name + "-" + pad.substr(2, 6));
      const Ran ran =
          train("template=" + name +
                " per_device_train_batch_size=3 max_steps=2 output_dir=" + output.string());
      ASSERT_EQ(ran.exit_code, 0) << ran.error;
      EXPECT_THAT(ran.out + ran.error, HasSubstr(", " + std::to_string(trained) + " trained;"));
      const Json state = Json::parse(read_text(output / "trainer_state.json"));
      Json log = Json::array();
      for (const Json& entry : state.at("log_history"))
        if (entry.contains("loss")) log.push_back({entry.at("loss"), entry.at("grad_norm")});
      losses.push_back(log);
    }
    EXPECT_EQ(losses[0].size(), 2u);
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_EQ(losses[0], losses[2]);
  }
}

TEST_F(DataCases, SayWhichTokenEndsAnAnswerWhereTheModelsIsAnother) {
  write("log.jsonl", pairs);
  const auto told = [&](const std::string& name) {
    return finding("stop-token-differs", "template=" + name);
  };

  EXPECT_THAT(told("chatml").dump(), AllOf(HasSubstr("<|im_end|>"), HasSubstr("<|endoftext|>")));
  EXPECT_THAT(told("qwen").dump(), HasSubstr("<|im_end|>"));
  EXPECT_TRUE(told("default").is_null());  // ends with the tokenizer's own
  EXPECT_TRUE(told("alpaca").is_null());
  EXPECT_THAT(plan().out, HasSubstr("template `chatml` ends an answer with `<|im_end|>` (id 2)"));
  EXPECT_THAT(plan("template=empty").out, HasSubstr("`empty` ends answers with nothing"));
}

}  // namespace
}  // namespace underkeel::test
