// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/memory_file.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;

std::string Rest(std::istream& file) {
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return Rest(file);
}

TEST(MemoryFileTest, ANewContentHasTheOldPathAndALaterTime) {
  MemoryFile file;
  const std::string path = file.path();
  EXPECT_EQ(Content(path), "");
  ASSERT_THAT(file.Replace("one, and longer"), IsOk());
  EXPECT_EQ(Content(path), "one, and longer");
  struct stat before = {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  ASSERT_THAT(file.Replace("two"), IsOk());
  EXPECT_EQ(Content(path), "two");
  EXPECT_EQ(file.path(), path);
  struct stat after = {};
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_LT(before.st_mtime, after.st_mtime);
}

TEST(MemoryFileTest, AReaderKeepsTheContentThatItOpened) {
  MemoryFile file;
  ASSERT_THAT(file.Replace("one"), IsOk());
  std::ifstream open(file.path());
  ASSERT_THAT(file.Replace("two"), IsOk());
  EXPECT_EQ(Rest(open), "one");
}

}  // namespace
}  // namespace outrider
