// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/request_reads.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/retry_delay.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What happened to all of them, in its order: "a reads", "a is refused".
using Story = std::vector<std::string>;

class Told final : public RequestReads::Reader {
 public:
  Told(std::string name, Story& story)
      : name_(std::move(name)), story_(story) {}

 private:
  void BeginRead() override { story_.push_back(name_ + " reads"); }
  void Refuse(const absl::Status& status) override {
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_TRUE(RetryDelayOf(status).has_value());
    story_.push_back(name_ + " is refused");
  }

  const std::string name_;
  Story& story_;
};

class RequestReadsTest : public ::testing::Test {
 protected:
  const RequestReads::Clock::time_point start_{};
  Story story_;
  Told a_{"a", story_}, b_{"b", story_}, c_{"c", story_}, d_{"d", story_};
  RequestReads reads_{{.most_reads = 2, .most_waiting = 1}};
};

TEST_F(RequestReadsTest, OnlySoManyAreReadAtATimeAndTheNewestGoesFirst) {
  RequestReads reads({.most_reads = 1});
  reads.Enter(a_, start_);
  reads.Enter(b_, start_);
  reads.Enter(c_, start_);
  EXPECT_THAT(story_, ElementsAre("a reads"));
  EXPECT_TRUE(reads.Leave(a_, start_));
  EXPECT_TRUE(reads.Leave(c_, start_));
  EXPECT_TRUE(reads.Leave(b_, start_));
  EXPECT_THAT(story_, ElementsAre("a reads", "c reads", "b reads"));
}

TEST_F(RequestReadsTest, WhoStallsKeepsItsPlaceWhileNobodyWaits) {
  reads_.Enter(a_, start_);
  reads_.Enter(b_, start_);
  reads_.Tick(start_ + seconds(29));
  EXPECT_THAT(story_, ElementsAre("a reads", "b reads"));
  EXPECT_TRUE(reads_.Leave(a_, start_ + seconds(29)));
}

TEST_F(RequestReadsTest, WhoStallsGivesItsPlaceToWhoWaits) {
  reads_.Enter(a_, start_);
  reads_.Enter(b_, start_);
  reads_.Enter(c_, start_ + milliseconds(900));
  reads_.Tick(start_ + seconds(1));
  EXPECT_THAT(story_, ElementsAre("a reads", "b reads"));
  reads_.Tick(start_ + milliseconds(1001));
  EXPECT_THAT(story_,
              ElementsAre("a reads", "b reads", "a is refused", "c reads"));
  EXPECT_FALSE(reads_.Leave(a_, start_ + seconds(2)));
  EXPECT_TRUE(reads_.Leave(b_, start_ + seconds(2)));
  // One that comes then does not wait for a tick.
  reads_.Enter(b_, start_ + seconds(3));
  story_.clear();
  reads_.Enter(d_, start_ + seconds(3));
  EXPECT_THAT(story_, ElementsAre("c is refused", "d reads"));
}

TEST_F(RequestReadsTest, MoreThanMayWaitAreRefusedTheOldestFirst) {
  reads_.Enter(a_, start_);
  reads_.Enter(b_, start_);
  reads_.Enter(c_, start_);
  reads_.Enter(d_, start_);
  EXPECT_THAT(story_, ElementsAre("a reads", "b reads", "c is refused"));
}

TEST_F(RequestReadsTest, NoneIsReadOrWaitsForEver) {
  RequestReads reads({.most_reads = 1, .patience = std::chrono::hours(1)});
  reads.Enter(a_, start_);
  reads.Enter(b_, start_);
  story_.clear();
  EXPECT_TRUE(reads.Tick(start_ + seconds(30)));
  EXPECT_THAT(story_, IsEmpty());
  EXPECT_FALSE(reads.Tick(start_ + milliseconds(30'001)));
  EXPECT_THAT(story_, ElementsAre("a is refused", "b is refused"));
}

TEST_F(RequestReadsTest, TicksAreNeededOnlyWhileThereAreAny) {
  EXPECT_TRUE(reads_.Enter(a_, start_));
  EXPECT_FALSE(reads_.Enter(b_, start_));
  EXPECT_TRUE(reads_.Tick(start_));
  reads_.Leave(a_, start_);
  reads_.Leave(b_, start_);
  EXPECT_FALSE(reads_.Enter(a_, start_));  // the ticks have not ended
  reads_.Leave(a_, start_);
  EXPECT_FALSE(reads_.Tick(start_));
  EXPECT_TRUE(reads_.Enter(a_, start_));
}

}  // namespace
}  // namespace outrider
