// SPDX-License-Identifier: Apache-2.0
// Sessions on verifiers that die, hang and drain, in virtual time.
#include "coordinator/pool/session_verifier.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/pool/poison.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"
#include "tests/support/fake_pool.h"
#include "tests/support/fake_verifier.h"

namespace outrider {
namespace {

using ::outrider::testing::EventLoop;
using ::outrider::testing::FakePool;
using ::outrider::testing::FakeProcess;
using ::outrider::testing::IsOk;
using ::outrider::testing::kFakeStep;
using ::outrider::testing::StatusIs;
using std::chrono::milliseconds;

class SessionVerifierTest : public ::testing::Test {
 protected:
  struct Stream {
    std::unique_ptr<SessionVerifier> verifier;
    SessionId id;
    int num_steps = 0;                     // answered
    std::optional<absl::Status> end = {};  // none: it runs
  };

  void Start(size_t num_verifiers, size_t num_streams) {
    processes_.resize(num_verifiers);
    for (FakeProcess& process : processes_) process.poison = &poison_;
    for (int i = 0; i < num_coordinators_; ++i) {
      pools_.push_back(std::make_unique<FakePool>(loop_, processes_));
    }
    pool_ = pools_[0].get();
    for (size_t i = 0; i < num_streams; ++i) AddStream();
  }
  Stream& AddStream(std::optional<uint64_t> poison_from = {}) {
    auto stream = std::make_unique<Stream>();
    stream->id = SessionId::FromBytes(
        absl::StrCat(1000 + streams_.size(), "abcdefghijkl"));
    if (poison_from.has_value()) poison_[stream->id] = *poison_from;
    // Their coordinators in turns.
    FakePool& pool = *pools_[streams_.size() % pools_.size()];
    auto choice = pool.ChooseVerifier(stream->id, {});
    stream->verifier = std::make_unique<SessionVerifier>(
        pool, stream->id, std::move(choice.seat), choice.description);
    stream->verifier->set_use(use_);
    streams_.push_back(std::move(stream));
    StartDetached(Run(*streams_.back()));
    return *streams_.back();
  }
  // Step after step, as a round's client does it.
  Task<void> Run(Stream& stream) {
    VerifyCall call = {.header = {.session = stream.id,
                                  .step = 1,
                                  .delta = {.append_tokens = prompt_}},
                       .prompt_length = static_cast<int>(prompt_.size())};
    while (stream.num_steps < num_steps_) {
      auto reply = co_await stream.verifier->Verify(call, cancellation_);
      if (!reply.ok()) {
        stream.end = reply.status();
        co_return;
      }
      ++call.header.step;
      if (std::holds_alternative<Miss>(reply->outcome)) {
        call.header.incarnation = {};
        call.header.delta = {.append_tokens = prompt_};
        continue;
      }
      call.header.incarnation = reply->header.incarnation;
      call.header.delta = {.append_tokens = {1, 2}};
      ++stream.num_steps;
      // A client that is nobody's first.
      co_await loop_.Sleep(milliseconds(1));
    }
    stream.end = absl::OkStatus();
  }
  template <typename Condition>
  void RunUntil(Condition condition) {
    while (!condition() && loop_.elapsed() < std::chrono::minutes(10)) {
      ASSERT_TRUE(loop_.RunOne());
    }
    ASSERT_TRUE(condition());
  }
  void RunToEnd() {
    RunUntil([&] {
      return std::all_of(streams_.begin(), streams_.end(),
                         [](const auto& one) { return one->end.has_value(); });
    });
  }
  bool HaveAllSteps(int num_steps) const {
    return std::all_of(streams_.begin(), streams_.end(), [&](const auto& one) {
      return one->num_steps >= num_steps;
    });
  }
  int NumDeaths() const {
    int sum = 0;
    for (const FakeProcess& process : processes_) sum += process.num_deaths;
    return sum;
  }
  // A platform that starts again what has died.
  void Restart(milliseconds after) {
    for (FakeProcess& process : processes_) {
      if (process.is_up || restarting_.contains(&process)) continue;
      restarting_.insert(&process);
      loop_.After(after, [this, &process] {
        restarting_.erase(&process);
        process.is_up = true;
      });
    }
    loop_.After(milliseconds(50), [this, after] {
      if (!pool_->is_closed) Restart(after);
    });
  }
  // The process that has a step.
  FakeProcess* InFlight() {
    const auto found = std::find_if(
        processes_.begin(), processes_.end(),
        [](const FakeProcess& process) { return process.num_in_flight > 0; });
    return found == processes_.end() ? nullptr : &*found;
  }
  FakeProcess& ProcessAt(const std::string& address) {
    const size_t begin = std::string("1.1.1.").size();
    return processes_.at(std::stoi(address.substr(begin)));
  }
  // Its breaker opens.
  void FailAt(const std::string& address) {
    auto choice = pool_->ChooseVerifier(
        {}, [&](const VerifierNode& node, const NodeDescription&) {
          return node.link.address == address;
        });
    for (int i = 0; i < 3; ++i) choice.seat->breaker.Failure(loop_.now(), {});
  }
  int64_t NumMoves(MoveReason reason) {
    int64_t sum = 0;
    for (const auto& pool : pools_) {
      sum += pool->moves().of_verifiers[static_cast<int>(reason)];
    }
    return sum;
  }
  int NumEndedByPoison() const {
    return static_cast<int>(
        std::count_if(streams_.begin(), streams_.end(), [](const auto& one) {
          return one->end.has_value() && IsPoison(*one->end);
        }));
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
  ~SessionVerifierTest() override {
    // Those that have not ended, as they should have, end now.
    num_steps_ = 0;
    cancellation_.Cancel();
    for (const auto& pool : pools_) pool->is_closed = true;
    while (loop_.RunOne()) {
    }
    streams_.clear();
  }

  EventLoop loop_;
  int num_steps_ = 100;
  std::vector<TokenId> prompt_ = {1, 2};
  SessionUse use_ = {.max_length = 100, .max_draft_tokens = 4};
  std::map<SessionId, uint64_t> poison_;
  std::vector<FakeProcess> processes_;
  std::set<FakeProcess*> restarting_;
  Cancellation cancellation_;
  int num_coordinators_ = 1;
  std::vector<std::unique_ptr<FakePool>> pools_;  // one of each
  FakePool* pool_ = nullptr;                      // the first
  std::vector<std::unique_ptr<Stream>> streams_;
};

TEST_F(SessionVerifierTest, ARequestThatTakesVerifiersDownTakesTwoAndNoOther) {
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
TEST_F(SessionVerifierTest, NoStreamOfAnotherCoordinatorIsTakenForIt) {
  num_coordinators_ = 3;
  Start(/*num_verifiers=*/4, /*num_streams=*/30);
  AddStream(/*poison_from=*/5);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_EQ(NumEndedByPoison(), 1);
  EXPECT_TRUE(IsPoison(*streams_.back()->end));
}

TEST_F(SessionVerifierTest, OlderVerifiersAreTakenTwiceToo) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  for (FakeProcess& process : processes_) process.is_old = true;
  AddStream(/*poison_from=*/5);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_EQ(NumEndedByPoison(), 1);
}

TEST_F(SessionVerifierTest, AnOpeningThatTakesVerifiersDownTakesTwo) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(3); });
  Stream& poison = AddStream(/*poison_from=*/0);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_TRUE(IsPoison(*poison.end));
  EXPECT_EQ(NumEndedByPoison(), 1);
}

TEST_F(SessionVerifierTest, TheOnlyVerifierIsTakenTwiceIfItIsStartedAgain) {
  ExpectTheOnlyVerifierTakenTwice(/*poison_from=*/5);
}

TEST_F(SessionVerifierTest, TheOnlyVerifierIsTakenTwiceByAnOpening) {
  ExpectTheOnlyVerifierTakenTwice(/*poison_from=*/0);
}

TEST_F(SessionVerifierTest,
       StreamsThatHaveAnsweredInBetweenSurviveThreeLosses) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  for (int i = 0; i < 3; ++i) {
    RunUntil([&] { return HaveAllSteps(20 * (i + 1)); });
    processes_[i].Die();
  }
  RunToEnd();
  EXPECT_EQ(NumEndedByPoison(), 0);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

TEST_F(SessionVerifierTest, OfTheManyThatLoseTwoAtOnceOneAtMostIsEnded) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  processes_[1].is_up = false;
  pool_->Ask();
  for (int i = 0; i < 20; ++i) AddStream();
  processes_[1].is_up = true;
  pool_->Ask();
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

TEST_F(SessionVerifierTest, VerifiersThatAllDieAtOnceEndNoStream) {
  Start(/*num_verifiers=*/3, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.Die();
  Restart(/*after=*/std::chrono::seconds(10));
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
  EXPECT_GT(loop_.elapsed(), std::chrono::seconds(10));
}

TEST_F(SessionVerifierTest, AConnectionThatBreaksUnderAVerifierMovesNobody) {
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

TEST_F(SessionVerifierTest, VerifiersThatHangOrDrainMakeNoSuspects) {
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

TEST_F(SessionVerifierTest, AVerifierThatFallsSilentIsLeftWithinASecond) {
  Start(/*num_verifiers=*/3, /*num_streams=*/9);
  // Its slowest step would allow it four seconds.
  for (FakeProcess& process : processes_) process.step = milliseconds(500);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.step = kFakeStep;
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].is_silent = true;
  const auto silent_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_LT(loop_.elapsed() - silent_at, std::chrono::seconds(1));
  EXPECT_EQ(NumMoves(MoveReason::kLate), 3);
}

TEST_F(SessionVerifierTest, AVerifierThatOnlyTakesLongIsNotLeft) {
  Start(/*num_verifiers=*/3, /*num_streams=*/9);
  for (FakeProcess& process : processes_) process.step = milliseconds(500);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.step = milliseconds(3000);
  RunUntil([&] { return HaveAllSteps(6); });
  EXPECT_EQ(NumMoves(MoveReason::kLate), 0);
}

// They take turns, so that the first of them ends when the last does.
TEST_F(SessionVerifierTest, TextsThatComeAtOnceAreLateNowhere) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  prompt_.assign(400, 1);
  for (FakeProcess& one : processes_) one.per_token = milliseconds(1);
  for (int i = 0; i < 2; ++i) AddStream();
  RunUntil([&] { return HaveAllSteps(1); });  // so their pace is known
  for (int i = 0; i < 128; ++i) AddStream();
  RunToEnd();
  EXPECT_EQ(processes_[0].num_texts + processes_[1].num_texts, 130);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// It is the coordinator that hears nothing.
TEST_F(SessionVerifierTest, WhereAllAreSilentNobodyMoves) {
  Start(/*num_verifiers=*/3, /*num_streams=*/9);
  for (FakeProcess& process : processes_) process.step = milliseconds(500);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.is_silent = true;
  const auto silent_at = loop_.elapsed();
  RunUntil([&] { return loop_.elapsed() - silent_at > milliseconds(1500); });
  EXPECT_EQ(NumMoves(MoveReason::kLate), 0);
  for (FakeProcess& process : processes_) process.is_silent = false;
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

TEST_F(SessionVerifierTest, ACoordinatorThatWasStoppedBlamesNobody) {
  Start(/*num_verifiers=*/3, /*num_streams=*/9);
  RunUntil([&] { return HaveAllSteps(10); });
  loop_.StandStill(std::chrono::seconds(20));
  RunToEnd();
  EXPECT_EQ(NumMoves(MoveReason::kLate), 0);
}

TEST_F(SessionVerifierTest, AVerifierOfTheSameModelTakesOverWhateverItsBuild) {
  processes_.resize(2);
  NodeDescription& other = processes_[1].description;
  other.context_length = 500;
  other.max_draft_tokens = 8;
  ++other.protocol_version;
  other.reply_formats.push_back(ReplyFormat::kTokens);
  other.rules.push_back(RuleKind::kBlock);
  Start(/*num_verifiers=*/2, /*num_streams=*/4);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].is_draining = true;
  RunUntil([&] { return HaveAllSteps(50); });
  processes_[0].Die();
  RunToEnd();
  EXPECT_EQ(NumMoves(MoveReason::kDraining), 2);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// One that is begun anew there asks for what it serves.
TEST_F(SessionVerifierTest, AStreamThatNoOtherServesIsToBeResumed) {
  processes_.resize(2);
  processes_[1].description.max_draft_tokens = 2;
  Start(/*num_verifiers=*/2, /*num_streams=*/2);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  RunToEnd();
  const int lost = streams_[0]->end->ok() ? 1 : 0;
  EXPECT_TRUE(absl::IsUnavailable(*streams_[lost]->end));
  EXPECT_THAT(*streams_[1 - lost]->end, IsOk());
}

TEST_F(SessionVerifierTest, AStreamBeginsWhereTheModelIsThatItWasPromised) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  // Replaced since they were asked what they are.
  processes_[0].weights_hash = "others";
  for (int i = 0; i < 4; ++i) AddStream();
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
  EXPECT_EQ(processes_[1].sessions.size(), 4u);
}

TEST_F(SessionVerifierTest, AStreamWhoseModelIsNowhereDoesNotBegin) {
  Start(/*num_verifiers=*/1, /*num_streams=*/0);
  processes_[0].weights_hash = "others";
  Stream& stream = AddStream();
  RunToEnd();
  EXPECT_THAT(*stream.end, StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(stream.num_steps, 0);
  // It is asked anew at once, and the next stream has what is there.
  Stream& next = AddStream();
  RunToEnd();
  EXPECT_THAT(*next.end, IsOk());
}

// Fifty at once: a quarter of the other's time is theirs, and no more is lost
// with them being suspects.
TEST_F(SessionVerifierTest, SuspectsAreBackWhenTheTextsOfAllAreTakenIn) {
  Start(/*num_verifiers=*/2, /*num_streams=*/100);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  const auto lost_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_LT(loop_.elapsed() - lost_at, 50 * 4 * (kFakeStep + milliseconds(10)));
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// The node that fails while a suspect waits for its place keeps none for it.
TEST_F(SessionVerifierTest, ASuspectThatIsKeptOutByABreakerLeavesItsPlace) {
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

TEST_F(SessionVerifierTest, AMovedStreamThatFindsNoRoomGoesOnWhereThereIsSome) {
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  Stream& stream = *streams_[0];
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  InFlight()->Die();
  const VerifierNode* const first = &stream.verifier->node();
  RunUntil([&] { return &stream.verifier->node() != first; });
  const VerifierNode* const second = &stream.verifier->node();
  ProcessAt(second->link.address).is_full = true;
  const auto refused_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(10); });
  EXPECT_NE(&stream.verifier->node(), second);
  EXPECT_LT(loop_.elapsed() - refused_at, std::chrono::seconds(1));
}

TEST_F(SessionVerifierTest, AMovedStreamThatFindsNoRoomAnywhereHolds) {
  Start(/*num_verifiers=*/3, /*num_streams=*/1);
  RunUntil([&] { return HaveAllSteps(3) && InFlight() != nullptr; });
  for (FakeProcess& process : processes_) process.is_full = true;
  InFlight()->Die();
  RunUntil([&] { return pool_->moves().num_held == 1; });
  for (FakeProcess& process : processes_) process.is_full = false;
  RunToEnd();
  EXPECT_THAT(*streams_[0]->end, IsOk());
  EXPECT_EQ(pool_->moves().num_held, 0);
}

// Passes take other sessions' rows along, which is no time that they lose.
TEST_F(SessionVerifierTest, OnlyItsOwnRowsAreInAMovedSessionsQuarter) {
  Start(/*num_verifiers=*/2, /*num_streams=*/100);
  for (FakeProcess& process : processes_) process.own_share = 0.25;
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  const auto lost_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_LT(loop_.elapsed() - lost_at, 50 * 3 * kFakeStep);
}

}  // namespace
}  // namespace outrider
