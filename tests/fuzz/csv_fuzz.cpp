// Feeds the reader of comma separated values with anything, over one file in memory. What it cuts comes
// back when it is written with quotation marks; the reader ends, and its lines do not run backwards.
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "data/csv_record.h"
#include "data/raw_records.h"
#include "memory_calls.h"

using namespace underkeel;

namespace {

std::string written(const std::vector<std::optional<std::string>>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    if (!values[i]) continue;
    text += '"';
    for (const char c : *values[i]) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += '"';
  }
  return text;
}

void check_cut(std::string_view text) {
  const auto values = data::csv_values(text);
  UK_CHECK(!values.empty() && values.size() == data::csv_names(text).size(),
           "a record has one value at least, and as many names");
  UK_CHECK(data::csv_values(written(values)) == values, "what was cut comes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto content = std::as_bytes(std::span(bytes, size));
  check_cut({reinterpret_cast<const char*>(bytes), size});
  io::FileSystem files(std::make_shared<io::MemoryCalls>(content));
  constexpr std::int64_t largest_record_bytes = 512;
  auto reader = data::RawRecordReader::open(files, "table.csv", largest_record_bytes);
  if (!reader) return 0;
  data::RawRecord record;
  std::int64_t line = 0;
  for (std::size_t count = 0;; ++count) {
    UK_CHECK(count <= size, "no more records than bytes");
    const auto more = reader->next(record);
    if (!more || !*more) break;
    UK_CHECK(record.line >= line, "lines run forwards");
    UK_CHECK(std::ssize(record.text) <= largest_record_bytes, "no record is beyond the limit");
    line = record.line;
    check_cut(record.text);
  }
  return 0;
}
