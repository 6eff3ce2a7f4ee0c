// Feeds the reader of a token cache with anything: as it is, and with a magic number and a checksum that fit,
// as a fault in memory or a writer of another version would leave it. A file that opens gives as many lengths
// as it has records, and its words without reading beyond its end.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "data/token_file.h"
#include "io/checksum.h"
#include "memory_calls.h"

using namespace underkeel;

namespace {

constexpr std::size_t header_bytes = 64;
constexpr std::size_t checksum_at = 40;

std::int64_t number_at(const std::vector<std::byte>& file, std::size_t at) {
  std::int64_t number = 0;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}

/// Where lengths and key begin, if the header's counts fill the file.
bool lay_out(const std::vector<std::byte>& file, std::size_t& lengths_at, std::size_t& key_at) {
  const std::int64_t size = std::ssize(file);
  for (const std::size_t at : {8, 16, 24, 32})
    if (number_at(file, at) < 0 || number_at(file, at) > size) return false;
  lengths_at = header_bytes + 4 * static_cast<std::size_t>(number_at(file, 16));
  key_at = lengths_at + 4 * static_cast<std::size_t>(number_at(file, 8));
  return key_at + static_cast<std::size_t>(number_at(file, 24) + number_at(file, 32)) ==
         file.size();
}

void use(const std::vector<std::byte>& content, const std::string& key) {
  io::FileSystem files(std::make_shared<io::MemoryCalls>(content));
  const auto opened = data::TokenFile::open(files, "data.tokens", key);
  if (!opened || !*opened) return;
  const data::TokenFile& file = **opened;
  std::vector<data::RecordLength> lengths;
  UK_CHECK(file.append_lengths(lengths).has_value(), "lengths of an open file");
  UK_CHECK(std::ssize(lengths) == file.record_count(), "a length for each record");
  std::vector<data::TokenWord> words(static_cast<std::size_t>(file.token_count()));
  const auto read = file.read(0, words);
  UK_CHECK(read || read.error().code == ErrorCode::bad_file, "words are read, or named as damaged");
  if (!words.empty()) (void)file.read(file.token_count() - 1, std::span(words).first(1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto given = std::as_bytes(std::span(bytes, size));
  std::vector<std::byte> content(given.begin(), given.end());
  use(content, "key");
  if (size < header_bytes) return 0;
  std::memcpy(content.data(), "UKTOKEN2", 8);
  std::memset(content.data() + checksum_at, 0, 8);
  std::size_t lengths_at = 0;
  std::size_t key_at = 0;
  if (!lay_out(content, lengths_at, key_at)) return use(content, ""), 0;
  const std::string key(reinterpret_cast<const char*>(content.data()) + key_at,
                        static_cast<std::size_t>(number_at(content, 24)));
  io::Checksum checksum;
  checksum.update(std::span(content).first(header_bytes));
  checksum.update(std::span(content).subspan(key_at));
  checksum.update(std::span(content).subspan(lengths_at, key_at - lengths_at));
  const std::uint64_t sum = checksum.value();
  std::memcpy(content.data() + checksum_at, &sum, sizeof sum);
  use(content, key);
  return 0;
}
