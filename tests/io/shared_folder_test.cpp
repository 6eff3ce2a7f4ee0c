#include "io/shared_folder.h"

#include <gtest/gtest.h>

#include "io/temp_folder.h"

namespace underkeel::io {
namespace {

TEST(SharedFolder, IsSeenByThoseWhoShareItOnly) {
  const TempFolder first;
  const TempFolder second;
  FileSystem files;

  ASSERT_TRUE(place_probe(files, first / "out", "run 7"));

  EXPECT_TRUE(sees_probe(files, first / "out", "run 7").value());
  EXPECT_FALSE(sees_probe(files, second / "out", "run 7").value());
  EXPECT_FALSE(sees_probe(files, second.path(), "run 7").value());
  // Left by an earlier run that died: the folder may still not be shared.
  ASSERT_TRUE(place_probe(files, second.path(), "run 6"));
  EXPECT_FALSE(sees_probe(files, second.path(), "run 7").value());
}

TEST(SharedFolder, IsLeftAsItWas) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_TRUE(place_probe(files, folder.path(), "run 7"));

  ASSERT_TRUE(remove_probe(files, folder.path()));

  EXPECT_TRUE(files.list(folder.path()).value().empty());
}

}  // namespace
}  // namespace underkeel::io
