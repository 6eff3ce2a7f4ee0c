#include "data/records.h"

#include <gmock/gmock.h>

#include "data/write_file.h"
#include "support/temporary_folder.h"

namespace underkeel::data {
namespace {

using test::TemporaryFolder;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Reading {
  Result<RecordReport> report;
  std::vector<std::string> prompts;
  std::vector<std::string> responses;
};

const Columns text_column = {.prompt = "text", .query = "", .response = ""};

std::string letters(int record) {
  return std::string(static_cast<std::size_t>(2000 + record), static_cast<char>('a' + record % 26));
}

class Records : public testing::Test {
 protected:
  Reading read(const std::string& name, std::string_view content, const Columns& columns,
               const RecordRules& rules = {}) {
    const std::string path = (folder / name).string();
    write_file(path, content);
    const DatasetEntry entry{.name = "data", .files = {path}, .columns = columns};
    Reading reading{.report = RecordReport{}};
    RecordWork work{.thread_count = threads};
    work.make = [](const Record&) { return Result<TokenisedRecord>(TokenisedRecord{}); };
    work.take = [&](const JudgedRecord& judged) {
      if (judged.state != RecordState::usable) return Result<void>();
      reading.prompts.push_back(judged.record.text);
      if (!judged.record.talk.messages.empty())
        reading.responses.push_back(judged.record.talk.messages.back().text);
      return Result<void>();
    };
    reading.report = read_records(files, entry, rules, work);
    return reading;
  }

  TemporaryFolder folder;
  io::FileSystem files;
  int threads = 1;
};

TEST_F(Records, OfATextFileAreItsLinesWithAnyKindOfEnd) {
  const auto reading = read("a.txt", "one\ntwo\r\n\nthree\rfour", text_column);

  EXPECT_THAT(reading.prompts, ElementsAre("one", "two", "", "three", "four"));
  EXPECT_EQ(reading.report->records, 5);
  EXPECT_EQ(reading.report->empty, 1);
}

TEST_F(Records, OfAnEmptyFileAreNone) {
  EXPECT_EQ(read("a.txt", "", text_column).report->records, 0);
  EXPECT_EQ(read("a.jsonl", "", text_column).report->records, 0);
  EXPECT_EQ(read("a.json", "[]", text_column).report->records, 0);
}

TEST_F(Records, OfJsonAreTheLinesOrTheElementsOfAList) {
  const auto lines = read("a.jsonl", "{\"text\":\"x\"}\n\n {\"text\":\"y\\n\"} \n", text_column);
  const auto list =
      read("a.json", " [ {\"text\" : \"x,]}\\\"\"} ,\n{\"text\":\"y\",\"o\":[{}]}]\n", text_column);

  EXPECT_THAT(lines.prompts, ElementsAre("x", "y\n"));
  EXPECT_THAT(list.prompts, ElementsAre("x,]}\"", "y"));
}

TEST_F(Records, SurviveTheEndOfTheReadBufferAnywhere) {
  std::string list = "[";
  std::string lines;
  for (int record = 0; record < 300; ++record) {
    const std::string object = "{\"text\":\"" + letters(record) + "\"}";
    list += (record == 0 ? "" : ",\r\n") + object;
    lines += object + "\r\n";
  }

  const auto from_list = read("a.json", list + "]", text_column);
  const auto from_lines = read("b.jsonl", lines, text_column);

  ASSERT_EQ(from_list.prompts.size(), 300u);
  EXPECT_EQ(from_list.prompts[299], letters(299));
  EXPECT_EQ(from_list.prompts, from_lines.prompts);
}

TEST_F(Records, JoinPromptAndQueryByANewline) {
  const auto reading = read("a.jsonl",
                            "{\"instruction\":\"a\",\"input\":\"b\"}\n{\"instruction\":\"a\","
                            "\"input\":null}\n{\"instruction\":\"\",\"input\":\"b\"}\n",
                            Columns{});

  EXPECT_THAT(reading.prompts, ElementsAre("a\nb", "a", "b"));
}

TEST_F(Records, SkipAByteOrderMark) {
  const auto reading =
      read("bom.json", "\xEF\xBB\xBF[{\"text\": \"a\"}, {\"text\": \"b\"}]", text_column);

  EXPECT_THAT(reading.prompts, ElementsAre("a", "b"));
  EXPECT_THAT(reading.report->notes, ElementsAre(HasSubstr("byte-order mark")));
}

TEST_F(Records, StopAtTheMostWanted) {
  const auto reading = read("a.txt", "a\nb\nc\n", text_column, {.most_records = 2});

  EXPECT_THAT(reading.prompts, ElementsAre("a", "b"));
}

TEST_F(Records, RefuseAJsonListNamedTxt) {
  for (const auto& [content, kind] : std::vector<std::pair<std::string, std::string>>{
           {"[\n {\n  \"instruction\": \"Add 0 and 1.\"\n }\n]",
            "content is a JSON list, name ends in .txt"},
           {"{\"text\":\"a\"}\n{\"text\":\"b\"}\n", "content is one JSON object a line"}}) {
    const auto reading = read("data.txt", content, text_column);

    ASSERT_FALSE(reading.report);
    EXPECT_THAT(reading.report.error().what, HasSubstr(kind));
  }
  EXPECT_TRUE(read("prose.txt", "[1] A footnote\n{also prose\n", text_column).report);
}

TEST_F(Records, RefuseAListThatIsCutWithTheByteAndWhatIsWholeBefore) {
  const std::string content =
      "[{\"instruction\": \"Add 0 and 1.\", \"input\": \"\", \"output\": \"1\"}, {\"instruction\": "
      "\"Add 1 and 2.\", \"input\": \"\", \"output\": \"3\"}, {\"instruction\": \"Add 2 and 3.\", "
      "\"input\": \"\", \"o";

  const auto reading = read("data-cut.json", content, Columns{});

  ASSERT_FALSE(reading.report);
  EXPECT_THAT(reading.report.error().what,
              HasSubstr("data-cut.json:1: broken, the file ends at byte 170, inside a text, after "
                        "2 whole records"));
}

TEST_F(Records, NameWhatEndsAListEarly) {
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"[{\"text\":\"a\"}", "the file ends at byte 13, inside a record, after 0 whole records"},
      {"[{\"text\":\"a\"},\n", "the file ends at byte 15, inside a record, after 1 whole records"},
      {"[{\"text\":\"a\"},]", "nothing follows the comma before byte 14"},
      {"[{\"text\":\"a\"}] x", "byte 15 follows the end of the list"},
      {"[{\"text\":\"a\"} {\"text\":\"b\"}]", "a.json:1, column 15: broken"},
      {"[{\"text\":\"a\"},\n {\"text\":b}]", "a.json:2, column 10: broken"},
      {"[1]", "the record is a number, not an object"},
      {"{\"text\":\"\\ud800\"}", "surrogate"},
      {"{\"text\":\"\xFF\"}", "UTF-8"},
  };
  for (const auto& [content, what] : broken) {
    const auto reading = read("a.json", content, text_column);

    ASSERT_FALSE(reading.report) << content;
    EXPECT_THAT(reading.report.error().what, HasSubstr(what));
  }
}

TEST_F(Records, OfATextFileMustBeUtf8) {
  const auto reading = read("a.txt", "fine\nab\xFF\n", text_column);

  ASSERT_FALSE(reading.report);
  EXPECT_THAT(reading.report.error().what,
              HasSubstr("a.txt:2, column 3: broken, byte 0xFF is not valid UTF-8"));
}

TEST_F(Records, AreAllJudgedBeforeTheReportRefusesTheBrokenOnes) {
  const std::string content =
      "{\"instruction\":\"a\",\"input\":\"\",\"output\":\"b\"}\n"
      "{\"instruction\":\"a\",\"input\":\"\",\"output\":7}\n"
      "{\"instruction\":\"a\",\"input\":\"\"}\n"
      "{\"instruction\":\"a\",\"input\":\"\",\"output\":\"\"}\n"
      "{\"instruction\":\"a\",\"input\":\"\",\"output\":\"b\"\n"
      "{\"instruction\":\"a\",\"input\":\"\",\"output\":\"b\",\"id\":9}\n"
      "{\"instruction\":\"a\",\"input\":null,\"output\":\"b\"}\n";

  const auto refused =
      read("data.jsonl", content, Columns{}, {.content = RecordContent::conversation});
  const auto taken = read("data.jsonl", content, Columns{},
                          {.content = RecordContent::conversation, .skip_broken = true});

  ASSERT_FALSE(refused.report);
  const std::string& what = refused.report.error().what;
  EXPECT_THAT(what, HasSubstr("7 records, 4 usable (1 empty), 2 dropped, 1 broken"));
  EXPECT_THAT(what, HasSubstr("data.jsonl:2: dropped, `output` is a number"));
  EXPECT_THAT(what, HasSubstr("data.jsonl:3: dropped, `output` is missing"));
  EXPECT_THAT(what, HasSubstr("data.jsonl:5, column 43: broken, "));
  ASSERT_TRUE(taken.report);
  EXPECT_THAT(taken.responses, ElementsAre("b", "", "b", "b"));
}

TEST_F(Records, WithoutTheNamedColumnPointToTheOneThatIsThere) {
  const auto misspelt = read("a.jsonl", "{\"texts\":\"a\"}\n", text_column);
  const auto of_lines = read("a.txt", "a\n", Columns{});

  ASSERT_FALSE(misspelt.report);
  EXPECT_THAT(misspelt.report.error().what,
              HasSubstr("column `text` is in no record; the first one has `texts`"));
  EXPECT_THAT(misspelt.report.error().fix, HasSubstr("\"prompt\": \"texts\""));
  ASSERT_FALSE(of_lines.report);
  EXPECT_THAT(of_lines.report.error().fix, HasSubstr("\"prompt\": \"text\""));
}

TEST_F(Records, MayNotBeLongerThanTheLimit) {
  const RecordRules rules{.largest_record_bytes = 300'000};
  const std::string line(400'000, 'a');

  for (const auto& [name, content] : std::vector<std::pair<std::string, std::string>>{
           {"a.txt", line}, {"a.json", "[\"" + line + "\"]"}}) {
    const auto reading = read(name, content, text_column, rules);

    ASSERT_FALSE(reading.report);
    EXPECT_THAT(reading.report.error().what, HasSubstr("longer than 293 KiB"));
  }
}

TEST_F(Records, MayNotNeedMoreMemoryThanThereIs) {
  const RecordRules rules{.memory_bytes = 80 * mebibyte};
  const std::string line(2'000'000, 'a');

  const auto reading = read("a.txt", line, text_column, rules);

  ASSERT_FALSE(reading.report);
  EXPECT_EQ(reading.report.error().code, ErrorCode::does_not_fit);
  EXPECT_THAT(reading.report.error().fix, HasSubstr("80.0 MiB of host memory are there"));
  EXPECT_TRUE(read("b.txt", line, text_column, {.memory_bytes = 400 * mebibyte}).report);
}

class DatasetInfo : public testing::Test {
 protected:
  Result<std::vector<DatasetEntry>> read(std::string_view json, const std::string& name = "data") {
    write_file(folder / "dataset_info.json", json);
    return read_dataset_info(files, folder.path(), {name});
  }

  TemporaryFolder folder;
  io::FileSystem files;
};

TEST_F(DatasetInfo, FillsColumnsOnlyWhenNoneAreNamed) {
  write_file(folder / "a.jsonl", "");
  const auto plain = read(R"({"data":{"file_name":"a.jsonl"}})");
  const auto named =
      read(R"({"data":{"file_name":"a.jsonl","columns":{"prompt":"text"},"num_samples":3}})");

  EXPECT_EQ(plain->at(0).columns.query, "input");
  EXPECT_EQ(named->at(0).columns.prompt, "text");
  EXPECT_EQ(named->at(0).columns.query, "");
  EXPECT_EQ(named->at(0).sample_count, 3);
}

TEST_F(DatasetInfo, TakesAFolderOfFilesInTheOrderOfTheirNames) {
  write_file(folder / "parts/b.txt", "");
  write_file(folder / "parts/a.txt", "");

  const auto entries = read(R"({"data":{"file_name":"parts"}})");

  ASSERT_TRUE(entries);
  EXPECT_THAT(entries->at(0).files,
              ElementsAre((folder / "parts/a.txt").string(), (folder / "parts/b.txt").string()));
}

TEST_F(DatasetInfo, NamesTheKnownKeyNearestToAnUnknownOne) {
  const auto entries = read(R"({"chat":{"file_name":"chat.jsonl","format":"sharegpt"}})", "chat");

  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().code, ErrorCode::bad_config);
  EXPECT_EQ(entries.error().what, "unknown key `format` in entry `chat`, nearest is `formatting`");
}

TEST_F(DatasetInfo, ChecksOnlyTheEntriesThatAreUsed) {
  write_file(folder / "a.txt", "");

  EXPECT_TRUE(read(R"({"other":{"frmat":1},"data":{"file_name":"a.txt"}})"));
}

TEST_F(DatasetInfo, NamesWhatIsWrong) {
  write_file(folder / "a.txt", "");
  write_file(folder / "mixed/a.txt", "");
  write_file(folder / "mixed/b.json", "");
  write_file(folder / "t.parquet", "");
  const std::vector<std::tuple<std::string, ErrorCode, std::string>> wrong = {
      {"{", ErrorCode::bad_file, "JSON"},
      {R"({"data":{"file_name":"a.txt"},"data":{"file_name":"b.txt"}})", ErrorCode::bad_file,
       "data"},
      {"[]", ErrorCode::bad_file, "not a JSON object"},
      {R"({"date":{}})", ErrorCode::not_found, "no data set `data`"},
      {R"({"data":1})", ErrorCode::bad_config, "not an object"},
      {R"({"data":{}})", ErrorCode::bad_config, "no `file_name`"},
      {R"({"data":{"file_name":[1]}})", ErrorCode::bad_config, "no `file_name`"},
      {R"({"data":{"file_name":"b.txt"}})", ErrorCode::not_found, "no such file"},
      {R"({"data":{"file_name":"mixed"}})", ErrorCode::bad_config, "mixes files"},
      {R"({"data":{"file_name":"t.parquet"}})", ErrorCode::unsupported, "`.parquet`"},
      {R"({"data":{"hf_hub_url":"a/b"}})", ErrorCode::unsupported, "`hf_hub_url`"},
      {R"({"data":{"file_name":"a.txt","formatting":"sharegtp"}})", ErrorCode::bad_config,
       "`sharegtp`"},
      {R"({"data":{"file_name":"a.txt","columns":{"images":"x"}}})", ErrorCode::unsupported,
       "has images"},
      {R"({"data":{"file_name":"a.txt","tags":{"role":"x"}}})", ErrorCode::bad_config,
       "nearest is `role_tag`"},
      {R"({"data":{"file_name":"a.txt","tags":{"role_tag":"x"}}})", ErrorCode::bad_config,
       "names no `content_tag`"},
      {R"({"data":{"file_name":"a.txt","ranking":true}})", ErrorCode::unsupported, "preferences"},
      {R"({"data":{"file_name":"a.txt","num_samples":0}})", ErrorCode::bad_config, "`num_samples`"},
      {R"({"data":{"file_name":"a.txt","columns":{"promt":"x"}}})", ErrorCode::bad_config,
       "nearest is `prompt`"},
      {R"({"data":{"file_name":"a.txt","columns":{"prompt":1}}})", ErrorCode::bad_file,
       "`prompt` is not a text"},
  };
  for (const auto& [json, code, what] : wrong) {
    const auto entries = read(json);

    ASSERT_FALSE(entries) << json;
    EXPECT_EQ(entries.error().code, code) << json;
    EXPECT_THAT(entries.error().what, HasSubstr(what));
  }
}

TEST_F(DatasetInfo, OfAnotherFolderIsNotFound) {
  const auto entries = read_dataset_info(files, folder / "none", {"data"});

  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace underkeel::data
