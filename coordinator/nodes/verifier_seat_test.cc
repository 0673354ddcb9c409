// SPDX-License-Identifier: Apache-2.0
// Requests that take verifiers down, and those that are with them, in virtual
// time.
#include "coordinator/nodes/verifier_seat.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "coordinator/nodes/session_errors.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/verifier_streams.h"

namespace outrider {
namespace {

using ::outrider::testing::FakeProcess;
using ::outrider::testing::IsOk;
using ::outrider::testing::kFakeStep;
using ::outrider::testing::StatusIs;
using ::outrider::testing::VerifierStreams;
using std::chrono::milliseconds;

class VerifierSeatTest : public VerifierStreams {
 protected:
  int NumDeaths() const {
    int sum = 0;
    for (const FakeProcess& process : processes_) sum += process.num_deaths;
    return sum;
  }
  // Its breaker opens.
  void FailAt(const std::string& address) {
    auto choice = pool_->ChooseVerifier(
        {}, [&](const VerifierNode& node, const NodeDescription&) {
          return node.link.address == address;
        });
    for (int i = 0; i < 3; ++i) choice.seat->breaker.Failure(loop_.now(), {});
  }
  void Wait(milliseconds time) {
    bool is_over = false;
    loop_.After(time, [&] { is_over = true; });
    RunUntil([&] { return is_over; });
  }
  // The order in which it becomes true of the streams.
  template <typename Condition>
  std::vector<const Stream*> OrderOf(Condition condition) {
    std::vector<const Stream*> order;
    RunUntil([&] {
      for (const auto& one : streams_) {
        if (condition(*one) && !absl::c_linear_search(order, one.get())) {
          order.push_back(one.get());
        }
      }
      return order.size() == streams_.size();
    });
    return order;
  }
  int NumEndedByPoison() const {
    return static_cast<int>(
        std::count_if(streams_.begin(), streams_.end(), [](const auto& one) {
          return one->end.has_value() && IsPoison(*one->end);
        }));
  }
  // Twenty streams, which the second verifier came up too late for.
  void StartWithNobodyAtTheSecond(size_t num_verifiers) {
    Start(num_verifiers, /*num_streams=*/0);
    processes_[1].is_up = false;
    pool_->Ask();
    for (int i = 0; i < 20; ++i) AddStream();
    processes_[1].is_up = true;
    pool_->Ask();
  }
  void ExpectTheOnlyVerifierTakenTwice(uint64_t poison_from) {
    Start(/*num_verifiers=*/1, /*num_streams=*/5);
    RunUntil([&] { return HaveAllSteps(3); });
    AddStream(poison_from);
    Restart(/*after=*/std::chrono::seconds(5));
    RunToEnd();
    EXPECT_EQ(NumDeaths(), 2);
    EXPECT_EQ(NumEndedByPoison(), 1);
  }
};

TEST_F(VerifierSeatTest, ARequestThatTakesVerifiersDownTakesTwoAndNoOther) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  Stream& poison = AddStream(/*poison_from=*/5);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_THAT(*poison.end, StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(NumEndedByPoison(), 1);
  for (const auto& stream : streams_) {
    EXPECT_EQ(stream->end->ok(), stream.get() != &poison);
  }
}

// Suspects of all coordinators come to a node one at a time.
TEST_F(VerifierSeatTest, NoStreamOfAnotherCoordinatorIsTakenForIt) {
  num_coordinators_ = 3;
  Start(/*num_verifiers=*/4, /*num_streams=*/30);
  AddStream(/*poison_from=*/5);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_EQ(NumEndedByPoison(), 1);
  EXPECT_TRUE(IsPoison(*streams_.back()->end));
}

TEST_F(VerifierSeatTest, OlderVerifiersAreTakenTwiceToo) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  for (FakeProcess& process : processes_) process.is_old = true;
  AddStream(/*poison_from=*/5);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_EQ(NumEndedByPoison(), 1);
}

TEST_F(VerifierSeatTest, AnOpeningThatTakesVerifiersDownTakesTwo) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(3); });
  Stream& poison = AddStream(/*poison_from=*/0);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_TRUE(IsPoison(*poison.end));
  EXPECT_EQ(NumEndedByPoison(), 1);
}

TEST_F(VerifierSeatTest, TheOnlyVerifierIsTakenTwiceIfItIsStartedAgain) {
  ExpectTheOnlyVerifierTakenTwice(/*poison_from=*/5);
}

TEST_F(VerifierSeatTest, TheOnlyVerifierIsTakenTwiceByAnOpening) {
  ExpectTheOnlyVerifierTakenTwice(/*poison_from=*/0);
}

TEST_F(VerifierSeatTest, StreamsThatHaveAnsweredInBetweenSurviveThreeLosses) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  for (int i = 0; i < 3; ++i) {
    RunUntil([&] { return HaveAllSteps(20 * (i + 1)); });
    processes_[i].Die();
  }
  RunToEnd();
  EXPECT_EQ(NumEndedByPoison(), 0);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

TEST_F(VerifierSeatTest, OfTheManyThatLoseTwoAtOnceOneAtMostIsEnded) {
  StartWithNobodyAtTheSecond(/*num_verifiers=*/2);
  RunUntil([&] { return processes_[0].num_in_flight == 20; });
  processes_[0].Die();
  // The first of them has just come in.
  RunUntil([&] { return processes_[1].num_in_flight > 0; });
  EXPECT_EQ(processes_[1].num_in_flight, 1);
  processes_[1].Die();
  processes_[0].is_up = true;
  RunToEnd();
  EXPECT_EQ(NumEndedByPoison(), 1);
}

// One after the other, so that one stream comes from the first to the second.
TEST_F(VerifierSeatTest, WhoLosesTwoWhileOthersLoseAThirdGoesOn) {
  StartWithNobodyAtTheSecond(/*num_verifiers=*/3);
  RunUntil([&] { return processes_[0].num_in_flight == 10; });
  processes_[0].Die();
  RunUntil([&] { return processes_[1].num_in_flight > 0; });
  processes_[1].Die();
  bool is_last_lost = false;
  loop_.After(milliseconds(800), [&] { is_last_lost = true; });
  RunUntil([&] { return is_last_lost && processes_[2].num_in_flight > 0; });
  processes_[2].Die();
  Restart(/*after=*/std::chrono::seconds(5));
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 3);
  EXPECT_EQ(NumEndedByPoison(), 0);
}

// Nobody can tell whose fault it is before the third is lost.
TEST_F(VerifierSeatTest, WhereVerifiersDieAnywayARequestTakesThreeOfThem) {
  Start(/*num_verifiers=*/6, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(3) && processes_[0].num_in_flight > 0; });
  processes_[0].Die();
  RunUntil([&] { return HaveAllSteps(6); });
  AddStream(/*poison_from=*/5);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 1 + 3);
  EXPECT_EQ(NumEndedByPoison(), 1);
  EXPECT_TRUE(IsPoison(*streams_.back()->end));
}

// One seat, whose verifier is lost under each of its steps.
class LostSeatTest : public VerifierSeatTest {
 protected:
  LostSeatTest() {
    Start(/*num_verifiers=*/1, /*num_streams=*/0);
    auto choice = pool_->ChooseVerifier({}, {});
    seat_.emplace(*pool_, call_.header.session, std::move(choice.seat),
                  choice.description);
  }
  // Whether the session is given up for it.
  bool Lose() {
    std::optional<bool> is_convicted;
    StartDetached(Lose(is_convicted));
    RunUntil([&] { return is_convicted.has_value(); });
    processes_[0].Die();
    processes_[0].is_up = true;
    return is_convicted == true;
  }

 private:
  Task<void> Lose(std::optional<bool>& is_convicted) {
    co_await seat_->TakeTurn(call_, cancellation_);
    is_convicted = co_await seat_->IsConvictedByLoss(cancellation_);
  }

  const VerifyCall call_ = {.header = {.session = SessionId::Random()}};
  std::optional<VerifierSeat> seat_;
};

TEST_F(LostSeatTest, OnlyWhatItMeetsAloneConvictsIt) {
  pool_->losses().Met("9.9.9.9:1", loop_.now());
  EXPECT_FALSE(Lose());
  EXPECT_FALSE(Lose());  // as another one was lost, too
  Wait(VerifierLosses::kMemory + std::chrono::seconds(1));
  processes_[0].is_up = false;  // so that it gives no place to it alone
  EXPECT_FALSE(Lose());
  EXPECT_TRUE(Lose());
}

// What is alone there is told by the answer alone.
TEST_F(LostSeatTest, AVerifierThatIsTooBusyToAnswerIsAskedForThePlaceAgain) {
  EXPECT_FALSE(Lose());
  processes_[0].is_starved = true;
  loop_.After(milliseconds(1200), [&] { processes_[0].is_starved = false; });
  EXPECT_TRUE(Lose());
}

TEST_F(LostSeatTest, WhoGetsNoAnswerIsLetInAfterAWhile) {
  EXPECT_FALSE(Lose());
  processes_[0].is_starved = true;
  const auto begin = loop_.elapsed();
  EXPECT_FALSE(Lose());
  EXPECT_GE(loop_.elapsed() - begin, milliseconds(2000));
  EXPECT_LE(loop_.elapsed() - begin, milliseconds(3000));
  processes_[0].is_starved = false;
  EXPECT_TRUE(Lose());
}

// They run as on a machine whose processors others take, all but a moment in
// each second.
TEST_F(VerifierSeatTest, VerifiersThatAreStarvedAreTakenTwiceToo) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  AddStream(/*poison_from=*/5);
  const std::function<void()> starve = [&] {
    for (FakeProcess& process : processes_) {
      process.is_starved = !process.is_starved;
    }
    const bool is_starved = processes_[0].is_starved;
    if (!pool_->is_closed) {
      loop_.After(milliseconds(is_starved ? 900 : 100), starve);
    }
  };
  starve();
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_EQ(NumEndedByPoison(), 1);
  EXPECT_TRUE(IsPoison(*streams_.back()->end));
}

TEST_F(VerifierSeatTest, ARequestThatComesAgainTakesNoMoreThanAtFirst) {
  Start(/*num_verifiers=*/6, /*num_streams=*/20);
  for (int i = 0; i < 2; ++i) {
    Stream& poison = AddStream(/*poison_from=*/5);
    RunUntil([&] { return poison.end.has_value(); });
    EXPECT_TRUE(IsPoison(*poison.end));
    EXPECT_EQ(NumDeaths(), 2 * (i + 1));
  }
  RunToEnd();
  EXPECT_EQ(NumEndedByPoison(), 2);
}

TEST_F(VerifierSeatTest, VerifiersThatAllDieAtOnceEndNoStream) {
  Start(/*num_verifiers=*/3, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.Die();
  Restart(/*after=*/std::chrono::seconds(10));
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
  EXPECT_GT(loop_.elapsed(), std::chrono::seconds(10));
}

TEST_F(VerifierSeatTest, AConnectionThatBreaksUnderAVerifierMovesNobody) {
  Start(/*num_verifiers=*/2, /*num_streams=*/20);
  for (int i = 1; i <= 5; ++i) {
    RunUntil([&] {
      return HaveAllSteps(10 * i) && processes_[0].num_in_flight > 0 &&
             processes_[1].num_in_flight > 0;
    });
    ++processes_[0].num_breaks;
    ++processes_[1].num_breaks;
  }
  RunToEnd();
  EXPECT_EQ(NumMoves(MoveReason::kLost), 0);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

TEST_F(VerifierSeatTest, VerifiersThatHangOrDrainMakeNoSuspects) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].is_hung = true;
  processes_[1].is_hung = true;
  RunUntil([&] { return HaveAllSteps(30); });
  processes_[2].is_draining = true;
  RunToEnd();
  EXPECT_GT(NumMoves(MoveReason::kLate), 0);
  EXPECT_GT(NumMoves(MoveReason::kDraining), 0);
  EXPECT_EQ(NumMoves(MoveReason::kLost), 0);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// The next loss would convict it.
TEST_F(VerifierSeatTest, AStepThatOutlastsADrainMakesNoSuspect) {
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  FakeProcess& drained = *InFlight();
  RunUntil([&] { return drained.num_in_flight == 0; });
  drained.step = std::chrono::seconds(1);
  RunUntil([&] { return drained.num_in_flight == 1; });
  drained.is_draining = true;
  Wait(milliseconds(500));
  drained.Die();
  RunUntil([&] { return InFlight() != nullptr && InFlight() != &drained; });
  InFlight()->Die();
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(NumDeaths(), 2);
}

// Fifty at once: a quarter of the other's time is theirs, and no more is lost
// with them being suspects.
TEST_F(VerifierSeatTest, SuspectsAreBackWhenTheTextsOfAllAreTakenIn) {
  Start(/*num_verifiers=*/2, /*num_streams=*/100);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  const auto lost_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_LT(loop_.elapsed() - lost_at, 50 * 4 * (kFakeStep + milliseconds(10)));
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

TEST_F(VerifierSeatTest, SuspectsComeInInTheOrderInWhichTheyLostTheirVerifier) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  processes_[1].is_up = false;
  pool_->Ask();
  for (int i = 0; i < 8; ++i) {
    AddStream();
    Wait(milliseconds(1));
  }
  processes_[1].is_up = true;
  pool_->Ask();
  // Another coordinator's suspect is there.
  const SessionId other = SessionId::Random();
  EXPECT_TRUE(processes_[1].suspects->Enter(other, loop_.now()));
  RunUntil([&] { return HaveAllSteps(3) && processes_[0].num_in_flight == 8; });
  processes_[0].Die();
  const VerifierNode* const lost = &streams_[0]->verifier->node();
  const std::vector<const Stream*> as_lost =
      OrderOf([&](const Stream& one) { return &one.verifier->node() != lost; });
  Wait(std::chrono::seconds(2));
  std::map<const Stream*, int> num_steps;
  for (const auto& one : streams_) num_steps[one.get()] = one->num_steps;
  processes_[1].suspects->Released(other);
  EXPECT_EQ(OrderOf([&](const Stream& one) {
              return one.num_steps > num_steps[&one];
            }),
            as_lost);
}

// A release counts for the step that it comes with, whenever that arrives.
TEST_F(VerifierSeatTest, WhoWaitsNowHereNowThereFindsNoStepOfItsOwnReleased) {
  prompt_.assign(40, 1);
  Start(/*num_verifiers=*/3, /*num_streams=*/60);
  for (FakeProcess& process : processes_) process.per_token = milliseconds(1);
  RunUntil([&] { return HaveAllSteps(10); });
  for (FakeProcess& process : processes_) process.is_full = true;
  processes_[0].Die();
  processes_[0].is_up = true;
  bool is_past = false;
  loop_.After(std::chrono::seconds(5), [&] { is_past = true; });
  RunUntil([&] { return is_past; });
  for (FakeProcess& process : processes_) process.is_full = false;
  RunToEnd();
  for (const FakeProcess& process : processes_) EXPECT_EQ(process.num_stale, 0);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// The node that fails while a suspect waits for its place keeps none for it.
TEST_F(VerifierSeatTest, ASuspectThatIsKeptOutByABreakerLeavesItsPlace) {
  Start(/*num_verifiers=*/3, /*num_streams=*/0);
  const SessionId other = SessionId::Random();
  for (FakeProcess& process : processes_) {
    EXPECT_TRUE(process.suspects->Enter(other, loop_.now()));
  }
  Stream& stream = AddStream();
  RunUntil([&] { return InFlight() != nullptr; });
  InFlight()->Die();
  const VerifierNode* const first = &stream.verifier->node();
  RunUntil([&] { return &stream.verifier->node() != first; });
  const std::string waits_at = stream.verifier->node().link.address;
  FailAt(waits_at);
  for (FakeProcess& process : processes_) process.suspects->Released(other);
  RunUntil([&] { return stream.num_steps > 0; });
  EXPECT_NE(stream.verifier->node().link.address, waits_at);
  for (FakeProcess& process : processes_) {
    EXPECT_TRUE(process.suspects->Enter(other, loop_.now()));
  }
}

}  // namespace
}  // namespace outrider
