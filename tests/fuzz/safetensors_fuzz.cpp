// Feeds a safetensors reader with anything: as a whole file, and as a header behind a length that
// fits, since few mutations would keep it right. What is accepted must tile the file exactly and
// come back from the writer.
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "io/safetensors.h"
#include "memory_calls.h"

using namespace underkeel;
using namespace underkeel::io;

namespace {

void check_accepted(const SafetensorsHeader& header) {
  std::int64_t position = header.data_begin;
  std::vector<TensorSpec> specs;
  for (const TensorEntry& entry : header.tensors) {
    UK_CHECK(entry.begin == position && entry.end >= entry.begin, "tensors tile the file");
    position = entry.end;
    UK_CHECK(entry.element_count() >= 0, "a count is not negative");
    if (!entry.type) continue;
    UK_CHECK(bytes_of(*entry.type, entry.element_count()) == entry.size_bytes(), "sizes agree");
    specs.push_back({entry.name, *entry.type, entry.shape});
  }
  UK_CHECK(position == header.file_size_bytes, "tensors reach the end of the file");

  const std::size_t count = specs.size();
  const auto layout = lay_out_safetensors(std::move(specs), header.metadata);
  UK_CHECK(layout.has_value(), "what was read can be written");
  const auto again = parse_safetensors_header(std::string_view(layout->header).substr(8), "again",
                                              layout->file_size_bytes - std::ssize(layout->header));
  UK_CHECK(again && again->tensors.size() == count && again->metadata == header.metadata,
           "what was written can be read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  FileSystem files(std::make_shared<MemoryCalls>(bytes));
  if (const auto header = read_safetensors_header(files, "file")) check_accepted(*header);

  if (size < 2) return 0;
  // The first two bytes say how much data follows the header; the rest is the header.
  const std::int64_t data_size_bytes = data[0] + 256 * data[1];
  const std::string_view json(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (const auto header = parse_safetensors_header(json, "json", data_size_bytes))
    check_accepted(*header);
  return 0;
}
