// Records of instruction data that are not as they should be.

#include <gmock/gmock.h>

#include "data/csv_record.h"
#include "data/sft_folder.h"

namespace underkeel::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Formats : public SftFolder {
 protected:
  static constexpr std::string_view chat_info =
      R"({"data":{"file_name":"data.jsonl","formatting":"sharegpt","columns":
         {"messages":"messages","tools":"tools","system":"system"},"tags":{"role_tag":"role",
         "content_tag":"content","user_tag":"user","assistant_tag":"assistant","system_tag":"system",
         "observation_tag":"tool","function_tag":"function"}}})";

  /// Why the second of two records is dropped; a good one stands before it.
  std::string drop_reason(const std::string& good, const std::string& record) {
    write("data.jsonl", good + "\n" + record + "\n");
    const auto data = load();
    if (!data) return to_text(data.error());
    const auto& problems = data->sets[0].records.problems;
    return problems.empty() ? "kept" : problems[0].reason;
  }
};

TEST_F(Formats, DropRecordsWithoutAnAnswerAndSayWhy) {
  const std::string good = R"({"instruction":"a","output":"b","history":[],"system":"s"})";
  describe(R"({"data":{"file_name":"data.jsonl","columns":{"prompt":"instruction",
              "response":"output","history":"history","system":"system"}}})");

  const std::pair<const char*, const char*> records[] = {
      {R"({"instruction":"a"})", "`output` is missing"},
      {R"({"instruction":"a","output":null})", "`output` is null"},
      {R"({"instruction":"a","output":["b"]})", "`output` is a list"},
      {R"({"instruction":5,"output":"b"})", "`instruction` is a number"},
      {R"({"instruction":"a","output":"b","system":1})", "`system` is a number"},
      {R"({"instruction":"a","output":"b","history":[["x"]]})",
       "`history` is no list of pairs of texts"},
      {R"({"instruction":"a","output":"b","history":[["x",1]]})",
       "`history` is no list of pairs of texts"},
      {R"({"instruction":null,"output":"b","history":"none"})", "kept"}};
  for (const auto& [record, reason] : records) EXPECT_EQ(drop_reason(good, record), reason);
}

TEST_F(Formats, DropConversationsThatDoNotAlternate) {
  const std::string good =
      R"({"system":"","tools":"","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})";
  describe(chat_info);

  const std::pair<const char*, const char*> records[] = {
      {R"({"messages":[]})", "there is no message"},
      {R"({"messages":null})", "`messages` is null, not a list"},
      {R"({"messages":[1,2]})", "message 1 has no text `role`"},
      {R"({"messages":[{"role":"user","content":"a"}]})", "1 messages: the last one has no answer"},
      {R"({"messages":[{"role":"assistant","content":"a"},{"role":"user","content":"a"}]})",
       "message 1 is of `assistant` where user is due"},
      {R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"a"}]})",
       "message 3 is of `user` where assistant is due"},
      {R"({"messages":[{"role":"user","content":null},{"role":"assistant","content":"a"}]})",
       "message 1: `content` is null"},
      {R"({"messages":[{"role":"user","text":"a"},{"role":"assistant","content":"a"}]})",
       "message 1: `content` is missing; it has `role`, `text`"},
      {R"({"messages":[{"from":"user","value":"a"},{"from":"gpt","value":"a"}]})",
       "message 1 has no text `role`; it has `from`, `value`"},
      {R"({"messages":[{"role":"user","content":[1]},{"role":"assistant","content":"a"}]})",
       "message 1: `content` is a list"},
      {R"({"messages":[{"role":"boss","content":"x"},{"role":"assistant","content":"a"}]})",
       "message 1 is of `boss` where user is due"}};
  for (const auto& [record, reason] : records) EXPECT_EQ(drop_reason(good, record), reason);
}

TEST_F(Formats, RefuseToolsWithFileAndLine) {
  const std::string good =
      R"({"system":"","tools":"[]","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})";
  describe(chat_info);
  const std::string turns =
      R"("messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}])";

  for (
      const std::string& record :
      {"{\"tools\":\"[{}]\"," + turns + "}", "{\"tools\":[{\"name\":\"f\"}]," + turns + "}",
       std::string(
           R"({"messages":[{"role":"user","content":"a"},{"role":"function","content":"{}"}]})")}) {
    const std::string error = drop_reason(good, record);
    EXPECT_THAT(error, HasSubstr("tools are not supported")) << record;
    EXPECT_THAT(error, HasSubstr("data.jsonl:2")) << record;
  }
}

TEST_F(Formats, OfMessagesUnderTheDefaultFormatPointToTheRightOne) {
  write("data.jsonl", R"({"messages":[{"role":"user","content":"a"}]})");

  const auto data = load();

  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().what, HasSubstr("`instruction` is in no record"));
  EXPECT_THAT(data.error().fix, HasSubstr(R"("formatting": "sharegpt")"));
}

TEST_F(Formats, WithAColumnThatNoRecordHasAreRefused) {
  write("data.jsonl", R"({"instruction":"a","output":"b","systm":"s"})");
  describe(R"({"data":{"file_name":"data.jsonl","columns":{"prompt":"instruction",
              "response":"output","system":"system"}}})");

  const auto data = load();

  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().what, HasSubstr("the column `system` is in no record"));
  EXPECT_THAT(data.error().fix, HasSubstr(R"("columns": {"system": "systm"})"));
}

TEST_F(Formats, ReadTheRightDescriptionOfAChat) {
  describe(R"({"chat":{"file_name":"data.jsonl","formatting":"sharegpt",
              "columns":{"messages":"messages"},"tags":{"role_tag":"role","content_tag":"content",
              "user_tag":"user","assistant_tag":"assistant"}}})");
  options.names = {"chat"};
  use_template("chatml");
  write(
      "data.jsonl",
      R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]})"
      "\n"
      R"({"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]})"
      "\n");

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  ASSERT_EQ(data->training->count(), 2);
  EXPECT_EQ(text_of(sample(*data->training, 1).tokens), "?user\n2+2??\n?assistant\n4?\n");
}

TEST_F(Formats, OfAListInATextFileAreRefusedAndOneThatEndsEarlyNamesTheByte) {
  describe(R"({"data":{"file_name":"data.txt"},"bom":{"file_name":"bom.json"},
               "cut":{"file_name":"cut.json"}})");
  const std::string whole = R"([{"instruction": "Add 0 and 1.", "input": "", "output": "1"}, )"
                            R"({"instruction": "Add 1 and 2.", "input": "", "output": "3"}])";
  write("data.txt", whole);
  write("bom.json", "\xEF\xBB\xBF" + whole);
  write("cut.json", whole.substr(0, whole.size() - 1) + R"(, {"instruction": "Add 2)");

  const auto text = load();
  options.names = {"bom"};
  const auto bom = load();
  options.names = {"cut"};
  const auto cut = load();

  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().what, "content is a JSON list, name ends in .txt");
  ASSERT_TRUE(bom) << to_text(bom.error());
  EXPECT_EQ(bom->training->count(), 2);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().what,
              HasSubstr(":1: broken, the file ends at byte " +
                        std::to_string(std::filesystem::file_size(folder / "cut.json")) +
                        ", inside a text, after 2 whole records"));
}

TEST_F(Formats, ReadADescriptionThatBeginsWithAByteOrderMark) {
  describe(
      "\xEF\xBB\xBF"
      R"({"data":{"file_name":"data.json"}})");
  write("data.json",
        "\xEF\xBB\xBF"
        R"([{"instruction": "a", "input": "", "output": "b"}])");

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  EXPECT_EQ(data->training->count(), 1);
}

TEST(CsvRecord, CutsAtCommasOutsideQuotationMarks) {
  const auto values = csv_values(R"(a,"b, ""c""
d",,"",NA,null x,1)");

  ASSERT_EQ(values.size(), 7u);
  EXPECT_EQ(values[0], "a");
  EXPECT_EQ(values[1], "b, \"c\"\nd");
  EXPECT_FALSE(values[2]);
  EXPECT_FALSE(values[3]);
  EXPECT_FALSE(values[4]);
  EXPECT_EQ(values[5], "null x");
  EXPECT_EQ(values[6], "1");
  EXPECT_THAT(csv_names("instruction,NA"), ElementsAre("instruction", "NA"));
  EXPECT_THAT(csv_names("a,b,a,a"), ElementsAre("a", "b", "a.1", "a.2"));
}

TEST_F(Formats, OfCommaSeparatedValuesNameBrokenLines) {
  describe(R"({"data":{"file_name":"data.csv"}})");
  write("data.csv", "instruction,input,output\r\na,b,\"c\nd\"\r\nx,y,z,w\n");
  const auto wide = load();
  write("data.csv", "instruction,input,output\na,,c\nx,y,\"z\n");
  const auto open = load();
  write("data.csv", "\xEF\xBB\xBFinstruction,input,output\na,,c\n\nx,y\n");
  const auto good = load();

  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().what, HasSubstr("data.csv:4, column 1: broken, 4 values for 3 columns"));
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().what, HasSubstr("inside the quoted value of the record from line 3"));
  ASSERT_TRUE(good) << to_text(good.error());
  EXPECT_EQ(good->training->count(), 1);
  EXPECT_EQ(good->sets[0].records.problems[0].reason, "`output` is null");
}

}  // namespace
}  // namespace underkeel::data
