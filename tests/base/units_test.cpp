#include "base/units.h"

#include <gtest/gtest.h>

namespace underkeel {
namespace {

TEST(Units, PrintsThreeFiguresInBinaryUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(91'400 * mebibyte / 1000 * 1024), "91.4 GiB");
  EXPECT_EQ(format_bytes(-2 * gibibyte), "-2.0 GiB");
}

TEST(Units, GroupsDigitsByThree) {
  EXPECT_EQ(format_count(1'234'567), "1,234,567");
  EXPECT_EQ(format_count(-999), "-999");
  EXPECT_EQ(format_count(100'000), "100,000");
}

TEST(Units, ReadsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("80GiB", "k").value(), 80 * gibibyte);
  EXPECT_EQ(parse_bytes("1.5 GB", "k").value(), 1'500'000'000);
  EXPECT_EQ(parse_bytes("4096", "k").value(), 4096);
}

TEST(Units, ReadsUnitsInLettersOfEitherCaseWithSpacesAround) {
  for (const char* text : {"12MiB", "12mib", "12MIB", "12 mib ", "12.0 MiB"})
    EXPECT_EQ(parse_bytes(text, "k").value(), 12 * mebibyte) << text;
  EXPECT_EQ(parse_bytes("3gb", "k").value(), 3'000'000'000);
  EXPECT_EQ(parse_bytes("7b", "k").value(), 7);
  EXPECT_EQ(parse_bytes("7kb", "k").value(), 7'000);
}

TEST(Units, MissesAUnitWhereNoBudgetIsSoSmall) {
  for (const char* text : {"24", "24.0", "8e3", "1048575"})
    EXPECT_TRUE(lacks_unit(text, parse_bytes(text, "k").value())) << text;
  for (const char* text : {"24B", "24GiB", "1048576", "25769803776", "4 kb"})
    EXPECT_FALSE(lacks_unit(text, parse_bytes(text, "k").value())) << text;
}

TEST(Units, RefusesWhatIsNotASize) {
  for (const char* text :
       {"", "GiB", "-1GiB", "1 parsec", "nan", "inf GiB", "1e30TiB", "12GiB34"}) {
    const auto size = parse_bytes(text, "--memory");
    ASSERT_FALSE(size.has_value()) << text;
    EXPECT_EQ(size.error().where, "--memory");
    EXPECT_EQ(size.error().code, ErrorCode::bad_config);
  }
}

}  // namespace
}  // namespace underkeel
