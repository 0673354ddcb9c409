// SPDX-License-Identifier: Apache-2.0
// What prompts get of passes where running sessions have most of the rows.
#include <vector>

#include "core/testing/scheduler_test.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::SchedulerTest;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;

constexpr int kLongText = 99;  // the session whose text is long

class FullHouseTest : public SchedulerTest {
 protected:
  FullHouseTest()
      : SchedulerTest({.prefill_chunk = 128,
                       .max_hold = 0,
                       .sessions = {.num_blocks = 8000}}) {}

  // Opens sessions that together have so many rows of each pass.
  void OpenRunning(int num_rows) {
    num_rows_of_.assign(20, num_rows / 20);
    for (int i = 0; i < num_rows % 20; ++i) ++num_rows_of_[i];
    for (int name = 1; name <= 20; ++name) OpenAll({name});
  }
  // The prompt's rows in each of so many passes, which all have the others'.
  std::vector<int> ChunksOf(int num_passes) {
    std::vector<int> chunks;
    for (int i = 0; i < num_passes; ++i) {
      for (int name = 1; name <= 20; ++name) {
        const int num_rows = num_rows_of_[name - 1];
        Submit(name, num_rows, {.num_rows = num_rows});
      }
      chunks.push_back(0);
      for (const auto& [name, num_tokens] : RunPass()) {
        if (name == kLongText) chunks.back() += num_tokens;
      }
    }
    return chunks;
  }

  std::vector<int> num_rows_of_;
};

// A text of 2048 tokens once took 114 passes beside sessions that left it 16 of
// 128 rows, or some more.
TEST_F(FullHouseTest, PromptsHaveAQuarterOfTheRowsHoweverFewAreLeft) {
  for (int num_running = 90; num_running <= 130; ++num_running) {
    OpenRunning(num_running);
    Submit(kLongText, 2048);
    constexpr int kNumPasses = 12;
    int num_rows = 0;
    for (const int chunk : ChunksOf(kNumPasses)) num_rows += chunk;
    EXPECT_GE(3 * num_rows, kNumPasses * num_running) << num_running;
    scheduler_.Release(Header(kLongText, 0));
    RunPass();
  }
}

TEST_F(FullHouseTest, BesideADueChunkAPassHasWhatIsLeft) {
  OpenRunning(110);
  Submit(kLongText, 2048);
  EXPECT_THAT(ChunksOf(4), ElementsAre(18, 128, 18, 128));
}

TEST_F(FullHouseTest, AStreamThatHasBegunHasAWholeChunkOfEveryPass) {
  for (const int num_running : {40, 100, 112, 113, 130}) {
    OpenRunning(num_running);
    Submit(kLongText, 2048, {.holds_up_stream = true});
    EXPECT_THAT(ChunksOf(4), Each(Ge(128))) << num_running;
    scheduler_.Release(Header(kLongText, 0));
    RunPass();
  }
}

// It is what the stream has, and no more than that.
TEST_F(FullHouseTest, AnOpeningBehindAStreamThatHasBegunWaitsForItsOwnTurn) {
  OpenRunning(110);
  Submit(98, 20, {.holds_up_stream = true});
  Submit(kLongText, 2048);
  EXPECT_THAT(ChunksOf(2), ElementsAre(0, 128));
  EXPECT_THAT(StatusOf(98), IsOk());
}

}  // namespace
}  // namespace outrider
