// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_writer.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

// A pipe of two pages that is read only when the test says so.
class LogWriterTest : public ::testing::Test {
 protected:
  LogWriterTest() {
    EXPECT_EQ(pipe(ends_.data()), 0);
    EXPECT_GE(fcntl(ends_[1], F_SETPIPE_SZ, 8192), 8192);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~LogWriterTest() override {
    for (const int end : ends_) close(end);
  }

  std::string Read() {
    std::string all;
    std::array<char, 4096> buffer = {};
    for (ssize_t n = 0; (n = read(ends_[0], buffer.data(), buffer.size())) > 0;)
      all.append(buffer.data(), static_cast<size_t>(n));
    return all;
  }

  std::array<int, 2> ends_ = {-1, -1};
};

std::string Lost(int num_lost) { return absl::StrCat(num_lost, " lost\n"); }

TEST_F(LogWriterTest, LinesThatFindNoRoomAreCountedInTheNextThatDoes) {
  LogWriter writer(ends_[1], Lost);
  const std::string line = std::string(999, 'a') + "\n";
  for (int i = 0; i < 20; ++i) writer.Write(line);  // and none blocks
  const std::string before = Read();
  const size_t num_written = before.size() / line.size();
  EXPECT_GE(num_written, 4);
  EXPECT_EQ(before.size() % line.size(), 0);
  writer.Write("b\n");
  writer.Write("c\n");
  EXPECT_EQ(Read(), absl::StrCat(20 - num_written, " lost\nb\nc\n"));
}

TEST_F(LogWriterTest, ALineThatIsCutIsEndedBeforeTheNext) {
  LogWriter writer(ends_[1], Lost);
  writer.Write(std::string(20'000, 'a') + "\n");
  const std::string cut = Read();
  EXPECT_EQ(cut, std::string(cut.size(), 'a'));
  writer.Write("b\n");
  EXPECT_EQ(Read(), "\n1 lost\nb\n");
}

// What is said of the lost ones fits, and the line after it does not.
TEST_F(LogWriterTest, WhatWasToldOfLostOnesIsNotToldAgain) {
  LogWriter writer(ends_[1], Lost);
  const std::string line = std::string(8191, 'a') + "\n";
  writer.Write(line);
  writer.Write(line);
  Read();
  writer.Write(std::string(20'000, 'b') + "\n");
  EXPECT_TRUE(absl::StartsWith(Read(), "1 lost\nb"));
  writer.Write("c\n");
  EXPECT_EQ(Read(), "\n1 lost\nc\n");
}

// It has room for a byte long before it has that of a line.
TEST_F(LogWriterTest, ATerminalThatNobodyReadsBlocksNobody) {
  int ours = -1;
  int theirs = -1;
  ASSERT_EQ(openpty(&ours, &theirs, nullptr, nullptr, nullptr), 0);
  {
    LogWriter writer(theirs, Lost);
    const std::string line = std::string(199, 'a') + "\n";
    for (int i = 0; i < 2000; ++i) writer.Write(line);
  }
  EXPECT_EQ(fcntl(theirs, F_GETFL) & O_NONBLOCK, 0);
  close(ours);
  close(theirs);
}

TEST_F(LogWriterTest, LongLinesAreWrittenWholeWhereThereIsRoom) {
  LogWriter writer(ends_[1], Lost);
  const std::string line = std::string(6000, 'a') + "\n";
  writer.Write(line);
  EXPECT_EQ(Read(), line);
}

}  // namespace
}  // namespace outrider
