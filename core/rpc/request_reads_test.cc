// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/request_reads.h"

#include <chrono>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/retry_delay.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What happened to all of them, in its order: "a reads", "a is refused".
using Story = std::vector<std::string>;

class Told final : public RequestReads::Reader {
 public:
  Told(std::string name, Story& story)
      : name_(std::move(name)), story_(story) {}
  std::chrono::milliseconds delay() const { return delay_; }

 private:
  void BeginRead() override { story_.push_back(name_ + " reads"); }
  void Refuse(const absl::Status& status) override {
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    delay_ = RetryDelayOf(status).value_or(delay_);
    story_.push_back(name_ + " is refused");
  }

  const std::string name_;
  Story& story_;
  std::chrono::milliseconds delay_{0};
};

class RequestReadsTest : public ::testing::Test {
 protected:
  static void Tick(int times, RequestReads& reads) {
    for (int i = 0; i < times; ++i) reads.Tick();
  }

  Story story_;
  Told a_{"a", story_}, b_{"b", story_}, c_{"c", story_}, d_{"d", story_};
  RequestReads reads_{{.most_reads = 2, .most_waiting = 1}};
};

TEST_F(RequestReadsTest, OnlySoManyAreReadAtATimeAndTheOldestGoesFirst) {
  RequestReads reads({.most_reads = 1});
  reads.Enter(a_);
  reads.Enter(b_);
  reads.Enter(c_);
  EXPECT_THAT(story_, ElementsAre("a reads"));
  EXPECT_TRUE(reads.Leave(a_));
  EXPECT_TRUE(reads.Leave(b_));
  EXPECT_TRUE(reads.Leave(c_));
  EXPECT_THAT(story_, ElementsAre("a reads", "b reads", "c reads"));
}

TEST_F(RequestReadsTest, ThoseWhoAreRefusedTogetherDoNotComeBackTogether) {
  for (Told* one : {&a_, &b_}) reads_.Enter(*one);
  Tick(1500, reads_);
  EXPECT_THAT(story_, ElementsAre("a reads", "b reads", "a is refused",
                                  "b is refused"));
  EXPECT_NE(a_.delay(), b_.delay());
  for (const Told* one : {&a_, &b_}) {
    EXPECT_GE(one->delay(), std::chrono::milliseconds(1000));
    EXPECT_LE(one->delay(), std::chrono::milliseconds(1500));
  }
}

TEST_F(RequestReadsTest, WhoStallsKeepsItsPlaceWhileNobodyWaits) {
  reads_.Enter(a_);
  reads_.Enter(b_);
  Tick(1499, reads_);
  EXPECT_THAT(story_, ElementsAre("a reads", "b reads"));
  EXPECT_TRUE(reads_.Leave(a_));
}

TEST_F(RequestReadsTest, WhoStallsGivesItsPlaceToWhoWaits) {
  reads_.Enter(a_);
  reads_.Enter(b_);
  Tick(45, reads_);
  reads_.Enter(c_);
  Tick(4, reads_);
  EXPECT_THAT(story_, ElementsAre("a reads", "b reads"));
  Tick(1, reads_);
  EXPECT_THAT(story_,
              ElementsAre("a reads", "b reads", "a is refused", "c reads"));
  EXPECT_FALSE(reads_.Leave(a_));
  EXPECT_TRUE(reads_.Leave(b_));
  // One that comes then does not wait for a tick.
  reads_.Enter(b_);
  Tick(60, reads_);
  story_.clear();
  reads_.Enter(d_);
  EXPECT_THAT(story_, ElementsAre("c is refused", "d reads"));
}

TEST_F(RequestReadsTest, TheMoreWaitTheLessTimeHasARead) {
  RequestReads reads(
      {.most_reads = 1, .patience = 6, .few_waiting = 1, .least_patience = 2});
  reads.Enter(a_);
  reads.Enter(b_);
  reads.Enter(c_);
  reads.Enter(d_);
  Tick(1, reads);
  EXPECT_THAT(story_, ElementsAre("a reads"));
  Tick(1, reads);
  EXPECT_THAT(story_, ElementsAre("a reads", "a is refused", "b reads"));
  Tick(3, reads);
  story_.clear();
  Tick(6, reads);
  EXPECT_THAT(story_, ElementsAre("c is refused", "d reads"));
}

TEST_F(RequestReadsTest, ASteadyRateOfStalledOnesKeepsNobodyWaiting) {
  for (const int rate : {1, 2, 5}) {  // in a tick, so to 250 a second
    RequestReads reads({.most_reads = 32});
    Story stalls;
    std::deque<Told> stalled;
    for (int tick = 0; tick < 1000; ++tick) {
      for (int i = 0; i < rate; ++i) {
        reads.Enter(stalled.emplace_back("stalled", stalls));
      }
      reads.Tick();
      if (tick % 20 == 0) {
        story_.clear();
        reads.Enter(a_);
      }
      reads.Leave(a_);  // if it reads
      if (tick % 20 == 19) {
        ASSERT_THAT(story_, ElementsAre("a reads")) << rate << " " << tick;
      }
    }
  }
}

TEST_F(RequestReadsTest, NobodyIsRefusedOfABurstThatComesByItself) {
  RequestReads reads({.most_reads = 32});
  std::deque<Told> burst;
  for (int i = 0; i < 200; ++i) {
    reads.Enter(burst.emplace_back(absl::StrCat(i), story_));
  }
  // Each comes whole within 0.1 s of its read.
  for (size_t i = 0; i < burst.size(); ++i) {
    if (i % 32 == 0) Tick(5, reads);
    EXPECT_TRUE(reads.Leave(burst[i])) << i;
  }
}

TEST_F(RequestReadsTest, MoreThanMayWaitAreRefusedTheOldestFirst) {
  reads_.Enter(a_);
  reads_.Enter(b_);
  reads_.Enter(c_);
  reads_.Enter(d_);
  EXPECT_THAT(story_, ElementsAre("a reads", "b reads", "c is refused"));
}

TEST_F(RequestReadsTest, NoneIsReadForEver) {
  RequestReads reads({.most_reads = 1});
  reads.Enter(a_);
  story_.clear();
  Tick(1499, reads);
  EXPECT_THAT(story_, IsEmpty());
  EXPECT_FALSE(reads.Tick());
  EXPECT_THAT(story_, ElementsAre("a is refused"));
}

TEST_F(RequestReadsTest, TicksAreNeededOnlyWhileThereAreAny) {
  EXPECT_TRUE(reads_.Enter(a_));
  EXPECT_FALSE(reads_.Enter(b_));
  EXPECT_TRUE(reads_.Tick());
  reads_.Leave(a_);
  reads_.Leave(b_);
  EXPECT_FALSE(reads_.Enter(a_));  // the ticks have not ended
  reads_.Leave(a_);
  EXPECT_FALSE(reads_.Tick());
  EXPECT_TRUE(reads_.Enter(a_));
}

}  // namespace
}  // namespace outrider
