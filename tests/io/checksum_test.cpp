#include "io/checksum.h"

#include <array>

#include <gtest/gtest.h>
#include <xxhash.h>

#include "io/temp_folder.h"

namespace underkeel::io {
namespace {

std::vector<std::byte> counting_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
  return bytes;
}

TEST(Checksum, OfPiecesEqualsThatOfTheWhole) {
  const auto bytes = counting_bytes(10'000);
  Checksum pieces;
  for (std::size_t at = 0, size = 1; at < bytes.size(); at += size, size = size * 2 + 1)
    pieces.update(std::span(bytes).subspan(at, std::min(size, bytes.size() - at)));

  EXPECT_EQ(pieces.value(), XXH3_64bits(bytes.data(), bytes.size()));
  EXPECT_EQ(Checksum().value(), XXH3_64bits(nullptr, 0));
}

TEST(Checksum, IsReadBackFromItsText) {
  EXPECT_EQ(checksum_text(0x0123456789abcdef), "0123456789abcdef");
  EXPECT_EQ(checksum_text(7), "0000000000000007");
  EXPECT_EQ(parse_checksum("fedcba9876543210"), 0xfedcba9876543210u);
  for (const char* text : {"", "7", "FEDCBA9876543210", "000000000000000g", "0x00000000000007"})
    EXPECT_EQ(parse_checksum(text), std::nullopt) << text;
}

TEST(PartWriter, GivesTheRangeAndTheChecksumOfWhatItWrote) {
  const TempFolder folder;
  FileSystem files;
  File file = files.create(folder / "a").value();
  const auto bytes = counting_bytes(1000);

  PartWriter writer(file, 24);
  for (std::size_t at = 0; at < bytes.size(); at += 300)
    ASSERT_TRUE(writer.write(std::span(bytes).subspan(at, std::min<std::size_t>(300, 1000 - at))));

  EXPECT_EQ(writer.part().begin, 24);
  EXPECT_EQ(writer.part().end, 1024);
  std::array<std::byte, 64> buffer;
  EXPECT_EQ(checksum_of(file, 24, 1024, buffer).value(), writer.part().xxh3_64);
  EXPECT_EQ(writer.part().xxh3_64, XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace
}  // namespace underkeel::io
