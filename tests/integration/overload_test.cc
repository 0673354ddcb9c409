// SPDX-License-Identifier: Apache-2.0
// Nodes that are full, and nodes that are broken: streams that run go on, and
// new ones find a place, wait for one, or are told to come later.
#include <chrono>
#include <cmath>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/retry_delay.h"
#include "core/rpc/channel.h"
#include "core/testing/status_matchers.h"
#include "core/wire/convert.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "outrider/v1/drafter.grpc.pb.h"
#include "outrider/v1/verifier.grpc.pb.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kOverloaded = absl::StatusCode::kResourceExhausted;
// A prompt that begins with it keeps its node's model until the test lets go.
constexpr TokenId kHeld = 48;

class ModelHold {
 public:
  TableLm::Table Around(TableLm::Table table) {
    return [this, table = std::move(table)](absl::Span<const TokenId> context) {
      if (context[0] == kHeld) {
        reached_.count_down();
        released_.wait();
      }
      return table(context);
    };
  }
  void AwaitPass() { reached_.wait(); }
  void Release() { released_.count_down(); }

 private:
  std::latch reached_{1};
  std::latch released_{1};
};

RequestHeader Opening(TokenSeq prompt) {
  return {.session = SessionId::Random(),
          .step = 1,
          .delta = {.append_tokens = std::move(prompt)}};
}

// A session at a verifier that is not the coordinator's.
class OtherSession {
 public:
  explicit OtherSession(LocalNode& verifier)
      : stub_(v1::VerifierService::NewStub(MakeChannel(verifier.address()))) {}

  // Its next step, which brings the whole text.
  grpc::Status Verify(TokenSeq text) {
    ++header_.step;
    header_.delta.append_tokens = std::move(text);
    grpc::ClientContext context;
    v1::VerifyResponse response;
    const grpc::Status status = stub_->Verify(
        &context, ToProto(VerifyCall{.header = header_}), &response);
    if (!status.ok()) return status;
    EXPECT_TRUE(response.has_full());
    header_.incarnation =
        Incarnation::FromBytes(response.header().incarnation());
    return status;
  }

 private:
  const std::unique_ptr<v1::VerifierService::Stub> stub_;
  RequestHeader header_ = {.session = SessionId::Random()};
};

::testing::AssertionResult Becomes(const std::function<bool()>& condition) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return ::testing::AssertionFailure() << "not within 10 s";
    }
    std::this_thread::yield();
  }
  return ::testing::AssertionSuccess();
}

int64_t NumRefused(NodeCounters& counters) {
  return counters.num_finished(NodeCall::kModel, kOverloaded);
}

// A cluster whose verifier is kept by a call that is not the coordinator's, and
// has no queue.
class BusyVerifierTest : public ::testing::Test {
 protected:
  BusyVerifierTest() {
    options_.queue_length = 0;
    other_target_ = options_.target;
    options_.target.table = hold_.Around(options_.target.table);
  }
  ~BusyVerifierTest() override {
    if (busy_.joinable()) LetGo();
  }
  void Start() {
    cluster_ = std::make_unique<InProcessCluster>(options_);
    ASSERT_TRUE(cluster_->WaitUntilReady());
    busy_ = std::jthread([this] {
      EXPECT_TRUE(OtherSession(cluster_->verifier()).Verify({kHeld}).ok());
    });
    hold_.AwaitPass();
  }
  void LetGo() {
    hold_.Release();
    busy_.join();
  }
  Result GenerateOne() { return Generate(*cluster_, Greedy({5}, 10, /*k=*/4)); }
  void ExpectPlain(const Result& result) {
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens, PlainGreedy({5}, 10, kVocab));
  }

  ModelHold hold_;
  InProcessCluster::Options options_ = SmallCluster();
  TableLm::Options other_target_;
  std::unique_ptr<InProcessCluster> cluster_;
  std::jthread busy_;
};

TEST_F(BusyVerifierTest, ARefusalCarriesARetryDelayThatAnyClientReads) {
  Start();
  const grpc::Status refused = OtherSession(cluster_->verifier()).Verify({5});
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(refused.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(0).UnpackTo(&retry));
  EXPECT_GT(retry.retry_delay().nanos(), 0);
}

TEST_F(BusyVerifierTest, AnOpeningThatIsRefusedGoesToAnotherVerifier) {
  options_.other_targets = {other_target_};
  Start();
  // Each may choose either: that none comes to the busy one first is 1 in 2^40.
  for (int i = 0; i < 40; ++i) ExpectPlain(GenerateOne());
  EXPECT_GT(NumRefused(cluster_->verifier().counters()), 0);
  EXPECT_EQ(NumRefused(cluster_->other_verifier(0).counters()), 0);
}

TEST_F(BusyVerifierTest, OpeningsWaitForRoomAndOneTooManyIsToldToComeLater) {
  options_.max_waiting = 1;
  Start();
  std::jthread waiting([this] { ExpectPlain(GenerateOne()); });
  const WaitingRoom& room = cluster_->pool().waiting_room();
  ASSERT_TRUE(Becomes([&] { return room.num_waiting() == 1; }));
  const Result refused = GenerateOne();
  EXPECT_THAT(refused.status,
              StatusIs(kOverloaded, HasSubstr("try again later")));
  EXPECT_TRUE(IsRefusal(refused.status));
  LetGo();
  waiting.join();
  EXPECT_EQ(room.num_waiting(), 0);
}

TEST_F(BusyVerifierTest, AClientThatLeavesLeavesTheWaitingRoom) {
  Start();
  const WaitingRoom& room = cluster_->pool().waiting_room();
  {
    const auto stream = cluster_->client().Generate(Greedy({5}, 10, /*k=*/4),
                                                    std::chrono::minutes(1));
    ASSERT_TRUE(Becomes([&] { return room.num_waiting() == 1; }));
  }
  EXPECT_TRUE(Becomes([&] { return room.num_waiting() == 0; }));
}

TEST(OverloadTest, OpeningsThatAFullQueueRefusesHaveTheirTurnLater) {
  InProcessCluster::Options options = SmallCluster();
  options.queue_length = 0;
  // No stream gets its first token before another was refused.
  std::latch was_refused(1);
  options.target.table = [table = options.target.table,
                          &was_refused](absl::Span<const TokenId> context) {
    was_refused.wait();
    return table(context);
  };
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  std::vector<std::jthread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      const Result result = Generate(cluster, Greedy({i}, 60, /*k=*/2));
      EXPECT_THAT(result.status, IsOk());
      EXPECT_EQ(result.tokens, PlainGreedy({i}, 60, kVocab));
    });
  }
  EXPECT_TRUE(
      Becomes([&] { return NumRefused(cluster.verifier().counters()) > 0; }));
  was_refused.count_down();
}

// A full queue refuses no step of a session that is live, full memory does.
TEST(OverloadTest, ARefusedStepEndsNoStreamThatRuns) {
  constexpr int kBlocks = 8;
  const TokenSeq all_memory(16 * kBlocks, kHeld);
  InProcessCluster::Options options = SmallCluster();
  options.queue_length = 0;
  options.num_blocks = kBlocks;
  Hold stream_hold;
  std::function<void()> hold_stream = [&] { stream_hold.Wait(); };
  Hold other_hold;
  options.target.table =
      [table = ActInRound(options.target.table, /*round=*/20, hold_stream),
       &all_memory, &other_hold](absl::Span<const TokenId> context) {
        if (context == absl::MakeConstSpan(all_memory)) other_hold.Wait();
        return table(context);
      };
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  LocalNode& verifier = cluster.verifier();
  OtherSession older(verifier);
  ASSERT_TRUE(older.Verify({kHeld}).ok());

  // The stream has delivered tokens, and its verifier is at a step of it.
  const auto stream = cluster.client().Generate(Greedy({5}, 60, /*k=*/2),
                                                std::chrono::minutes(1));
  TokenSeq delivered;
  while (delivered.empty()) {
    const auto update = stream->Next();
    ASSERT_THAT(update, IsOk());
    ASSERT_TRUE(update->has_value());
    for (const auto& token : (*update)->tokens) delivered.push_back(token.id);
  }
  stream_hold.AwaitStream();
  EXPECT_EQ(OtherSession(verifier).Verify({5}).error_code(),
            grpc::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Becomes([&] { return NumRefused(verifier.counters()) == 1; }));

  // Its next step finds all memory with an older session, whose own step was
  // taken, as full as the queue was.
  std::jthread other([&] { EXPECT_TRUE(older.Verify(all_memory).ok()); });
  EXPECT_TRUE(Becomes(
      [&] { return verifier.node().engine_metrics().num_waiting == 1; }));
  stream_hold.Release();
  other_hold.AwaitStream();
  EXPECT_TRUE(Becomes([&] { return NumRefused(verifier.counters()) > 1; }));
  other_hold.Release();
  other.join();
  ASSERT_TRUE(older.Verify({kHeld}).ok());

  const Result rest = Drain(*stream);
  EXPECT_THAT(rest.status, IsOk());
  delivered.insert(delivered.end(), rest.tokens.begin(), rest.tokens.end());
  EXPECT_EQ(delivered, PlainGreedy({5}, 60, kVocab));
}

TEST(OverloadTest, OfTwoVerifiersTheBrokenOneGetsNearlyNoStreams) {
  InProcessCluster::Options options = SmallCluster();
  options.other_targets = {options.target};
  options.other_targets[0].table = [](absl::Span<const TokenId> /*context*/) {
    return std::vector<float>(kVocab, std::nanf(""));
  };
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  // Idle as it is, it would be the first choice for each of them.
  std::vector<SessionNodes> running;
  for (int i = 0; i < 4; ++i) {
    auto pair = cluster.pool().Assign(SessionId::Random());
    ASSERT_THAT(pair, IsOk());
    running.push_back(*std::move(pair));
  }
  std::erase_if(running, [&](const SessionNodes& pair) {
    return pair.verifier->node().link.address ==
           cluster.other_verifier(0).address();
  });
  ASSERT_EQ(running.size(), 2u);
  for (int i = 0; i < 20; ++i) {
    const Result result = Generate(cluster, Greedy({i}, 10, /*k=*/4));
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens, PlainGreedy({i}, 10, kVocab));
  }
  // Three to find out, and a probe now and then.
  const int64_t num_failed = cluster.other_verifier(0).counters().num_finished(
      NodeCall::kModel, absl::StatusCode::kInternal);
  EXPECT_GE(num_failed, 3);
  EXPECT_LT(num_failed, 10);
}

// What fails on two nodes may be what they fail of.
TEST(OverloadTest, APoisonedRequestIsTriedOnTwoVerifiersAndNoMore) {
  InProcessCluster::Options options = SmallCluster();
  options.other_targets = {options.target, options.target};
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  EXPECT_THAT(Generate(cluster, Greedy({kPoison}, 10, /*k=*/4)).status,
              StatusIs(absl::StatusCode::kInternal));
  int64_t num_failed = 0;
  for (LocalNode* node : {&cluster.verifier(), &cluster.other_verifier(0),
                          &cluster.other_verifier(1)}) {
    num_failed += node->counters().num_finished(NodeCall::kModel,
                                                absl::StatusCode::kInternal);
  }
  EXPECT_EQ(num_failed, 2);
}

TEST(OverloadTest, ARefusedDraftIsNotAskedForAgainBeforeItsTime) {
  ModelHold hold;
  InProcessCluster::Options options = SmallCluster();
  options.queue_length = 0;
  options.draft.table = hold.Around(options.draft.table);
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  std::jthread busy([&] {
    const auto stub =
        v1::DrafterService::NewStub(MakeChannel(cluster.drafter().address()));
    grpc::ClientContext context;
    v1::DraftResponse response;
    const DraftCall call = {.header = Opening({kHeld}), .max_draft_tokens = 1};
    EXPECT_TRUE(stub->Draft(&context, ToProto(call), &response).ok());
  });
  hold.AwaitPass();
  const absl::Time begin = absl::Now();
  const Result plain = Generate(cluster, Greedy({5}, 300, /*k=*/4));
  const absl::Duration taken = absl::Now() - begin;
  EXPECT_THAT(plain.status, IsOk());
  EXPECT_EQ(plain.tokens, PlainGreedy({5}, 300, kVocab));
  EXPECT_EQ(plain.num_accepted, 0);
  // The least delay that a refusal gives is 50 ms.
  EXPECT_LE(NumRefused(cluster.drafter().counters()),
            1 + taken / absl::Milliseconds(50));
  hold.Release();
  busy.join();
  // The refusals have closed nothing.
  EXPECT_GT(GenerateWithDrafts(cluster, Greedy({5}, 300, /*k=*/4)).num_accepted,
            0);
}

}  // namespace
}  // namespace outrider::testing
