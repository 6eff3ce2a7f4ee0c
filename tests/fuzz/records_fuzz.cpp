// dataset_info.json and a data file, separated by a zero byte; the first byte says what the records are to be. Of
// what is read every record is judged once, in order, and the report counts what was handed on.
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "data/dataset_info.h"
#include "data/records.h"
#include "memory_calls.h"

using namespace underkeel;

namespace {

struct Seen {
  std::int64_t usable = 0;
  std::int64_t dropped = 0;
  std::int64_t broken = 0;
  std::int64_t line = 0;
};

void read(io::FileSystem& files, const data::DatasetEntry& entry, const data::RecordRules& rules) {
  Seen seen;
  data::RecordWork work;
  work.make = [&](const data::Record& record) -> Result<data::TokenisedRecord> {
    if (rules.content == data::RecordContent::conversation) {
      const auto& messages = record.talk.messages;
      UK_CHECK(!messages.empty() && messages.size() % 2 == 0, "a conversation ends with an answer");
      for (std::size_t i = 0; i < messages.size(); ++i)
        UK_CHECK((messages[i].role == data::Role::user) == (i % 2 == 0), "roles alternate");
    }
    return data::TokenisedRecord{};
  };
  work.take = [&](const data::JudgedRecord& judged) -> Result<void> {
    UK_CHECK(judged.line >= 1 && (entry.files.size() > 1 || judged.line >= seen.line),
             "lines run forwards");
    seen.line = judged.line;
    ++(judged.state == data::RecordState::usable    ? seen.usable
       : judged.state == data::RecordState::dropped ? seen.dropped
                                                    : seen.broken);
    return {};
  };
  const auto report = data::read_records(files, entry, rules, work);
  if (!report) return;
  UK_CHECK(report->usable == seen.usable && report->dropped == seen.dropped &&
               report->broken == seen.broken &&
               report->records == seen.usable + seen.dropped + seen.broken,
           "the report counts every record");
  UK_CHECK(rules.skip_broken || report->broken == 0, "broken records are refused");
  UK_CHECK(rules.most_records < 0 || report->records <= rules.most_records + 1,
           "no more than wanted");
  (void)data::describe(*report);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(bytes, size)).subspan(1);
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const std::size_t cut = std::min(text.find('\0'), text.size());
  const auto content = input.subspan(std::min(cut + 1, text.size()));
  io::FileSystem files(
      std::make_shared<io::MemoryCalls>(content, "dataset_info.json", input.first(cut)));
  const auto entries = data::read_dataset_info(files, "data", {"d"});
  if (!entries) return 0;
  const int choice = bytes[0];
  read(
      files, entries->front(),
      {.content = (choice & 1) != 0 ? data::RecordContent::text : data::RecordContent::conversation,
       .skip_broken = (choice & 2) != 0,
       .most_records = (choice & 4) != 0 ? 2 : -1,
       .largest_record_bytes = 512});
  return 0;
}
