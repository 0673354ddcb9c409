// SPDX-License-Identifier: Apache-2.0
// Streams whose verifier dies, hangs or drains, over real gRPC in one process:
// they go on elsewhere, or wait, and no token changes.
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/testing/status_matchers.h"
#include "core/wire/node_calls.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kStreamLength = 200;
constexpr int kDrafts = 4;  // of a round
// The drafter's row at which the test acts: in the first round that drafts, as
// no other has to come. A drafter that gets no time to run is left alone.
constexpr int kActsAt = 2;

// A cluster of several verifiers, one of which has the stream.
class MovesTest : public ::testing::Test {
 protected:
  // `num_others`: verifiers beside the first.
  void Start(int num_others) {
    options_.target.table = drafter_first_.Around(options_.target.table);
    options_.other_targets.assign(num_others, options_.target);
    options_.draft.table = ActInRound(options_.draft.table, kActsAt, act_);
    cluster_.emplace(options_);
    drafter_first_.Watch(*cluster_);
    ASSERT_TRUE(cluster_->WaitUntilReady());
  }
  // -1 is the first verifier, others count from 0.
  LocalNode* Node(int i) {
    return is_stopped_[i + 1] ? nullptr
           : i < 0            ? &cluster_->verifier()
                              : &cluster_->other_verifier(i);
  }
  int NumOthers() const {
    return static_cast<int>(options_.other_targets.size());
  }
  // The verifier that has a session.
  int Holder() {
    for (int i = -1; i < NumOthers(); ++i) {
      if (Node(i) != nullptr && Node(i)->num_sessions() > 0) return i;
    }
    return -1;
  }
  void Stop(int i) {
    is_stopped_[i + 1] = true;
    if (i < 0) {
      cluster_->StopVerifier();
    } else {
      cluster_->StopOtherVerifier(i);
    }
  }
  Seat<VerifierNode> Sit(int i) { return SitAt(*cluster_, *Node(i)); }
  int64_t NumMoves(MoveReason reason) {
    return cluster_->pool().moves().of_verifiers[static_cast<int>(reason)];
  }
  // A verifier that was stopped is lost, or late where the machine gives it no
  // time to end.
  int64_t NumMovesFromStopped() {
    return NumMoves(MoveReason::kLost) + NumMoves(MoveReason::kLate);
  }
  int NumHeld() { return cluster_->pool().moves().num_held; }

  static ::testing::AssertionResult Becomes(
      const std::function<bool()>& condition) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) {
        return ::testing::AssertionFailure() << "not within 20 s";
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return ::testing::AssertionSuccess();
  }

  void ExpectPlain(const Result& result) {
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens, PlainGreedy({5}, kStreamLength, kVocab));
  }
  // What came of a stream that broke, and of the one that resumed it.
  void ExpectPlainTogether(const Result& broken, Result rest) {
    EXPECT_THAT(broken.tokens, Not(IsEmpty()));
    rest.tokens.insert(rest.tokens.begin(), broken.tokens.begin(),
                       broken.tokens.end());
    ExpectPlain(rest);
  }
  Result GenerateGreedy() {
    return Generate(*cluster_, Greedy({5}, kStreamLength, kDrafts));
  }
  // A stream loses its only verifier, and holds until that is back and takes so
  // many drafts.
  void ExpectPlainThroughRestart(int max_draft_tokens) {
    Start(/*num_others=*/0);
    act_ = [&] { cluster_->StopVerifier(); };
    Result result;
    std::jthread caller([&] { result = GenerateGreedy(); });
    ASSERT_TRUE(Becomes([&] { return NumHeld() == 1; }));
    act_ = nullptr;
    cluster_->StartVerifier("0", max_draft_tokens);
    caller.join();
    ExpectPlain(result);
  }

  InProcessCluster::Options options_ = SmallCluster();
  std::function<void()> act_;
  DrafterFirst drafter_first_;
  std::optional<InProcessCluster> cluster_;
  std::array<bool, 8> is_stopped_ = {};
};

TEST_F(MovesTest, AStreamWhoseVerifierDiesGoesOnAtAnother) {
  Start(/*num_others=*/1);
  act_ = [&] { Stop(Holder()); };
  ExpectPlain(GenerateGreedy());
  EXPECT_EQ(NumMovesFromStopped(), 1);
  EXPECT_EQ(NumHeld(), 0);
}

TEST_F(MovesTest, OneSeedGivesOneCoupledTextThroughAMove) {
  Start(/*num_others=*/1);
  client::GenerationRequest request = Greedy({5}, kStreamLength, kDrafts);
  request.temperature = 1.0;
  request.acceptance_rule = RuleKind::kCoupled;
  request.seed = 7;
  const Result undisturbed = Generate(*cluster_, request);
  ASSERT_THAT(undisturbed.status, IsOk());
  options_.draft.table = SmallCluster().draft.table;
  cluster_.reset();
  Start(/*num_others=*/1);
  act_ = [&] { Stop(Holder()); };
  const Result moved = Generate(*cluster_, request);
  EXPECT_THAT(moved.status, IsOk());
  EXPECT_EQ(moved.tokens, undisturbed.tokens);
  EXPECT_EQ(NumMovesFromStopped(), 1);
}

TEST_F(MovesTest, EveryRuleAndFormatGoesOnToItsEnd) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    for (const ReplyFormat format : kReplyFormats) {
      SCOPED_TRACE(absl::StrCat("rule ", static_cast<int>(rule), ", format ",
                                static_cast<int>(format)));
      options_ = SmallCluster();
      is_stopped_ = {};
      Start(/*num_others=*/1);
      act_ = [&] { Stop(Holder()); };
      client::GenerationRequest request = Greedy({5}, kStreamLength, kDrafts);
      request.temperature = 1.0;
      request.acceptance_rule = rule;
      request.reply_format = format;
      const Result result = Generate(*cluster_, request);
      EXPECT_THAT(result.status, IsOk());
      EXPECT_EQ(result.tokens.size(), size_t{kStreamLength});
      EXPECT_EQ(NumMovesFromStopped(), 1);
      act_ = nullptr;
      cluster_.reset();
    }
  }
}

TEST_F(MovesTest, AStreamGoesOnWhereARoundTakesFewerDrafts) {
  for (const double temperature : {0.0, 1.0}) {
    options_ = SmallCluster();
    options_.other_max_draft_tokens = 1;
    is_stopped_ = {};
    Start(/*num_others=*/1);
    const auto other = Sit(0);  // so that the stream begins at the first
    act_ = [&] { Stop(-1); };
    client::GenerationRequest request = Greedy({5}, kStreamLength, kDrafts);
    request.temperature = temperature;
    const Result result = Generate(*cluster_, request);
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens.size(), size_t{kStreamLength});
    if (temperature == 0) {
      ExpectPlain(result);
    }
    EXPECT_EQ(NumMovesFromStopped(), 1);
    act_ = nullptr;
  }
}

TEST_F(MovesTest, SixteenStreamsOfADeadVerifierAllGoOn) {
  Start(/*num_others=*/1);
  act_ = [&] { Stop(Holder()); };
  std::vector<std::jthread> callers;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&, i] {
      const Result result =
          Generate(*cluster_, Greedy({i}, kStreamLength, /*k=*/2));
      EXPECT_THAT(result.status, IsOk());
      EXPECT_EQ(result.tokens, PlainGreedy({i}, kStreamLength, kVocab));
    });
  }
  callers.clear();
  EXPECT_GT(NumMovesFromStopped(), 0);
}

TEST_F(MovesTest, AStreamThatWaitsForItsTurnTakesThatOfAnotherVerifier) {
  // They are made before the cluster's threads, one of which has them: the
  // thread sanitizer sees nothing of what orders the two through gRPC.
  Seat<VerifierNode> crowded;
  MoveGate::Turn closed;
  Start(/*num_others=*/2);
  act_ = [&] {
    const int holder = Holder();
    // It moves to the one that has fewer sessions, whose gate stays closed.
    crowded = Sit(holder == -1 ? 0 : -1);
    closed = Sit(holder == 1 ? 0 : 1)->gate.Enter(1, MoveGate::Clock::now());
    Stop(holder);
  };
  ExpectPlain(GenerateGreedy());
  EXPECT_TRUE(closed);
  EXPECT_EQ(NumMovesFromStopped(), 1);
}

TEST_F(MovesTest, AStreamLeavesAVerifierThatDrainsBetweenTwoRounds) {
  LocalNode* drained = nullptr;  // before the cluster's threads, as above
  Start(/*num_others=*/1);
  act_ = [&] {
    drained = Node(Holder());
    drained->counters().draining = true;
  };
  const Result result = GenerateGreedy();
  ExpectPlain(result);
  EXPECT_EQ(NumMoves(MoveReason::kDraining), 1);
  EXPECT_EQ(result.finish->num_misses, 1);
  ASSERT_NE(drained, nullptr);
  EXPECT_TRUE(Becomes([&] { return drained->num_sessions() == 0; }));
}

TEST_F(MovesTest, WithoutAnotherADrainingVerifierServesTheStreamToItsEnd) {
  Start(/*num_others=*/0);
  act_ = [&] { cluster_->verifier().counters().draining = true; };
  const Result result = GenerateGreedy();
  ExpectPlain(result);
  EXPECT_EQ(result.finish->num_misses, 0);
}

TEST_F(MovesTest, AVerifierThatHangsIsLeftAtItsDeadline) {
  std::latch released(1);
  std::atomic<int> num_rows = 0;
  std::atomic<bool> has_hung = false;
  options_.target.table =
      [&, table = options_.target.table](absl::Span<const TokenId> context) {
        if (++num_rows > 100 && !has_hung.exchange(true)) released.wait();
        return table(context);
      };
  Start(/*num_others=*/1);
  ExpectPlain(GenerateGreedy());
  EXPECT_TRUE(has_hung);
  EXPECT_GE(NumMoves(MoveReason::kLate), 1);
  released.count_down();
  cluster_.reset();  // its pass may still look at what this test has
}

TEST_F(MovesTest, WithoutAnyVerifierAStreamHoldsUntilOneIsBack) {
  ExpectPlainThroughRestart(options_.max_draft_tokens);
  EXPECT_EQ(NumHeld(), 0);
}

TEST_F(MovesTest, AVerifierThatIsBackAndTakesFewerDraftsKeepsItsStream) {
  ExpectPlainThroughRestart(/*max_draft_tokens=*/1);
}

TEST_F(MovesTest, AClientThatLeavesWhileItsStreamHoldsLeavesAtOnce) {
  Start(/*num_others=*/0);
  act_ = [&] { cluster_->StopVerifier(); };
  {
    const auto stream = cluster_->client().Generate(
        Greedy({5}, kStreamLength, kDrafts), std::chrono::minutes(1));
    std::jthread reader([&] { Drain(*stream); });
    ASSERT_TRUE(Becomes([&] { return NumHeld() == 1; }));
    stream->Cancel();
  }
  EXPECT_TRUE(Becomes([&] { return NumHeld() == 0; }));
}

TEST_F(MovesTest, AStreamThatHoldsBeyondItsDeadlineCanBeResumed) {
  Start(/*num_others=*/0);
  act_ = [&] { cluster_->StopVerifier(); };
  const auto stream = cluster_->client().Generate(
      Greedy({5}, kStreamLength, kDrafts), std::chrono::seconds(5));
  const Result broken = Drain(*stream);
  EXPECT_THAT(broken.status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  cluster_->StartVerifier();
  ASSERT_TRUE(Becomes([&] { return cluster_->pool().HasVerifier(); }));
  ExpectPlainTogether(broken, Generate(*cluster_, stream->ResumeRequest()));
}

// What is resumed where no verifier is ready.
class HeldResumeTest : public MovesTest {
 protected:
  explicit HeldResumeTest(
      std::chrono::milliseconds patience = std::chrono::minutes(1)) {
    options_.resume_patience = patience;
    Start(/*num_others=*/0);
    const Result whole = GenerateGreedy();
    begun_.tokens.assign(whole.tokens.begin(), whole.tokens.begin() + 50);
    request_.seed = whole.start->seed;
    request_.model = whole.start->model;
    request_.delivered = begun_.tokens;
    Stop(-1);
    EXPECT_TRUE(Becomes([&] { return !cluster_->pool().HasVerifier(); }));
  }
  std::unique_ptr<client::GenerationStream> Resume(
      std::chrono::milliseconds timeout) {
    return cluster_->client().Generate(request_, timeout);
  }

  Result begun_;
  client::GenerationRequest request_ = Greedy({5}, kStreamLength, kDrafts);
};

TEST_F(HeldResumeTest, GoesOnWhenAVerifierIsBack) {
  Result rest;
  std::jthread caller(
      [&] { rest = Drain(*Resume(/*timeout=*/std::chrono::minutes(1))); });
  ASSERT_TRUE(Becomes([&] { return NumHeld() == 1; }));
  // What is new is told at once to try elsewhere.
  EXPECT_THAT(GenerateGreedy().status,
              StatusIs(absl::StatusCode::kUnavailable));
  cluster_->StartVerifier();
  caller.join();
  ExpectPlainTogether(begun_, rest);
  EXPECT_EQ(NumHeld(), 0);
}

TEST_F(HeldResumeTest, EndsWithItsClient) {
  const auto stream = Resume(/*timeout=*/std::chrono::minutes(1));
  ASSERT_TRUE(Becomes([&] { return NumHeld() == 1; }));
  stream->Cancel();
  EXPECT_TRUE(Becomes([&] { return NumHeld() == 0; }));
}

TEST_F(HeldResumeTest, EndsAtItsDeadline) {
  EXPECT_THAT(Drain(*Resume(/*timeout=*/std::chrono::seconds(1))).status,
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(Becomes([&] { return NumHeld() == 0; }));
}

class ShortHeldResumeTest : public HeldResumeTest {
 protected:
  ShortHeldResumeTest() : HeldResumeTest(std::chrono::milliseconds(300)) {}
};

TEST_F(ShortHeldResumeTest, SendsItsClientToOtherCoordinatorsInTheEnd) {
  EXPECT_THAT(Drain(*Resume(/*timeout=*/std::chrono::minutes(1))).status,
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(NumHeld(), 0);
}

TEST_F(HeldResumeTest, IsSentToOtherCoordinatorsByADrain) {
  Result rest;
  std::jthread caller(
      [&] { rest = Drain(*Resume(/*timeout=*/std::chrono::minutes(1))); });
  ASSERT_TRUE(Becomes([&] { return NumHeld() == 1; }));
  EXPECT_TRUE(cluster_->service().Drain(std::chrono::milliseconds(300)));
  caller.join();
  EXPECT_THAT(rest.status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(NumHeld(), 0);
}

TEST_F(HeldResumeTest, GivesOthersThanItsOwnModelAMomentAlone) {
  const auto stream = Resume(/*timeout=*/std::chrono::minutes(1));
  ASSERT_TRUE(Becomes([&] { return NumHeld() == 1; }));
  cluster_->StartVerifier(/*weights_hash=*/"others");
  EXPECT_THAT(Drain(*stream).status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its weights are")));
}

// Its own may be on the way, and a client that is refused gives up.
TEST_F(HeldResumeTest, WaitsAMomentWhereOthersThanItsOwnModelAreReady) {
  cluster_->StartVerifier(/*weights_hash=*/"others");
  ASSERT_TRUE(Becomes([&] { return cluster_->pool().HasVerifier(); }));
  Result rest;
  std::jthread caller(
      [&] { rest = Drain(*Resume(/*timeout=*/std::chrono::minutes(1))); });
  EXPECT_TRUE(Becomes([&] { return NumHeld() == 1; }));
  cluster_->StopVerifier();
  cluster_->StartVerifier();
  caller.join();
  ExpectPlainTogether(begun_, rest);
}

TEST_F(MovesTest, AStreamWhoseWeightsWereRolledOutIsResumedAfterTheWayBack) {
  options_.resume_patience = std::chrono::milliseconds(300);
  Start(/*num_others=*/0);
  act_ = [&] {
    cluster_->StopVerifier();
    cluster_->StartVerifier(/*weights_hash=*/"others");
  };
  const auto stream = cluster_->client().Generate(
      Greedy({5}, kStreamLength, kDrafts), std::chrono::minutes(1));
  const Result broken = Drain(*stream);
  EXPECT_THAT(broken.status, StatusIs(absl::StatusCode::kAborted));
  act_ = nullptr;
  EXPECT_THAT(Generate(*cluster_, stream->ResumeRequest()).status,
              StatusIs(absl::StatusCode::kFailedPrecondition));
  cluster_->StopVerifier();
  cluster_->StartVerifier();
  Result rest;
  ASSERT_TRUE(Becomes([&] {  // once the coordinator knows it
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    rest = Generate(*cluster_, stream->ResumeRequest());
    return rest.status.ok();
  }));
  ExpectPlainTogether(broken, rest);
}

TEST_F(MovesTest, TheFourthMoveInAMinuteEndsTheStreamWhichCanBeResumed) {
  // The next rounds do so too: those that move say nothing of a drafter.
  for (int i = 1; i <= 3; ++i) {
    options_.draft.table =
        ActInRound(options_.draft.table, kActsAt + kDrafts * i, act_);
  }
  Start(/*num_others=*/4);
  act_ = [&] { Stop(Holder()); };
  const Result result = GenerateGreedy();
  EXPECT_THAT(result.status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("resume")));
  EXPECT_EQ(NumMovesFromStopped(), 3);
  TokenSeq expected = PlainGreedy({5}, kStreamLength, kVocab);
  expected.resize(result.tokens.size());
  EXPECT_EQ(result.tokens, expected);
}

TEST_F(MovesTest, OtherKernelsTakeAStreamWhereNoEqualOnesAreLeft) {
  options_.other_numerics = "others";
  Start(/*num_others=*/1);
  act_ = [&] { Stop(Holder()); };
  ExpectPlain(GenerateGreedy());
  EXPECT_EQ(NumMovesFromStopped(), 1);
  EXPECT_EQ(cluster_->pool().moves().num_to_other_kernels, 1);
}

}  // namespace
}  // namespace outrider::testing
