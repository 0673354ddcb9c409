// SPDX-License-Identifier: Apache-2.0
// Verifiers that have less memory for keys and values than the context takes.
#include <chrono>
#include <functional>

#include "core/base/monotonic_clock.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kSmall = 64;  // tokens, of a context of 512

// The first verifier has four blocks.
InProcessCluster::Options LittleMemory() {
  InProcessCluster::Options options = SmallCluster();
  options.num_blocks = kSmall / 16;
  return options;
}

// The next session comes to the first verifier then.
Seat<VerifierNode> SitOnTheOther(InProcessCluster& cluster) {
  return SitAt(cluster, cluster.other_verifier(0));
}

void ExpectEndsAtTheMemory(const Result& result) {
  EXPECT_THAT(result.status, IsOk());
  ASSERT_TRUE(result.finish.has_value());
  EXPECT_EQ(result.finish->reason, FinishReason::kLength);
}

TEST(MemoryTest, ATextEndsWithTheMemoryAsWithTheContext) {
  InProcessCluster cluster(LittleMemory());
  ASSERT_TRUE(cluster.WaitUntilReady());
  for (const int k : {0, 4}) {
    client::GenerationRequest request = Greedy({5}, 200, k);
    const Result cut = Generate(cluster, request);
    ExpectEndsAtTheMemory(cut);
    EXPECT_EQ(cut.tokens, PlainGreedy({5}, kSmall - 1, kVocab));
    request.max_tokens.reset();
    EXPECT_EQ(Generate(cluster, request).tokens, cut.tokens);
  }
}

TEST(MemoryTest, APromptThatFitsNowhereHereIsToldSo) {
  InProcessCluster cluster(LittleMemory());
  ASSERT_TRUE(cluster.WaitUntilReady());
  const Result result =
      Generate(cluster, Greedy(TokenSeq(kSmall, 5), 10, /*k=*/4));
  EXPECT_THAT(result.status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("that are ready have memory for 64")));
}

// There may be more memory elsewhere: it is no end of the text.
TEST(MemoryTest, AResumeThatFitsNowhereHereIsToldSo) {
  InProcessCluster::Options options = LittleMemory();
  options.other_targets = {options.target};
  options.other_numerics = "others";
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  client::GenerationRequest request = Greedy({5}, 200, /*k=*/4);
  request.seed = 1;
  request.delivered = PlainGreedy({5}, 100, kVocab);
  request.model = ModelIdentity{
      .weights_hash = "0", .dtype = "float32", .numerics = "table"};
  EXPECT_THAT(Generate(cluster, request).status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("that are ready have memory for 64")));
}

TEST(MemoryTest, APromptGoesToTheVerifierThatHasRoomForIt) {
  InProcessCluster::Options options = LittleMemory();
  options.other_targets = {options.target};
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const auto seat = SitOnTheOther(cluster);
  const TokenSeq prompt(100, 5);
  const Result result = Generate(cluster, Greedy(prompt, 50, /*k=*/4));
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.tokens, PlainGreedy(prompt, 50, kVocab));
}

// Equal weights may be served with contexts of two lengths.
TEST(MemoryTest, AResumeGoesToTheVerifierWhoseContextHasRoomForIt) {
  InProcessCluster::Options options = SmallCluster();
  options.other_targets = {options.target};
  options.target.context_length = kSmall;
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const auto seat = SitOnTheOther(cluster);
  const TokenSeq whole = PlainGreedy({5}, 150, kVocab);
  for (const int num_delivered : {20, 100}) {
    client::GenerationRequest request = Greedy({5}, 150, /*k=*/4);
    request.seed = 1;
    request.delivered = TokenSeq(whole.begin(), whole.begin() + num_delivered);
    request.model = ModelIdentity{
        .weights_hash = "0", .dtype = "float32", .numerics = "table"};
    const Result rest = Generate(cluster, request);
    EXPECT_THAT(rest.status, IsOk());
    EXPECT_EQ(rest.tokens,
              TokenSeq(whole.begin() + num_delivered, whole.end()));
  }
}

TEST(MemoryTest, AStreamThatOutgrowsItsVerifierGoesToALargerOne) {
  InProcessCluster::Options options = LittleMemory();
  options.other_targets = {options.target};
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const auto seat = SitOnTheOther(cluster);
  const Result result = Generate(cluster, Greedy({5}, 100, /*k=*/4));
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.tokens, PlainGreedy({5}, 100, kVocab));
  EXPECT_EQ(cluster.pool()
                .moves()
                .of_verifiers[static_cast<int>(MoveReason::kOutgrown)],
            1);
}

// It is no end of a text that the larger one is not to be had for a moment.
TEST(MemoryTest, AStreamThatOutgrowsItsVerifierWaitsForALargerOne) {
  std::function<void()> act;
  InProcessCluster::Options options = LittleMemory();
  options.other_targets = {options.target};
  options.target.table = ActInRound(options.target.table, 20, act);
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const auto larger = SitOnTheOther(cluster);
  act = [&] {
    larger->out_until = MonotonicClock::now() + std::chrono::seconds(1);
  };
  const Result result = Generate(cluster, Greedy({5}, 100, /*k=*/0));
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.tokens, PlainGreedy({5}, 100, kVocab));
}

TEST(MemoryTest, AStreamThatOutgrowsAllThatAreLeftEndsWell) {
  for (const int k : {0, 4}) {
    std::function<void()> act;
    InProcessCluster::Options options = LittleMemory();
    options.other_targets = {options.target};
    options.target.table = ActInRound(options.target.table, 20, act);
    InProcessCluster cluster(options);
    ASSERT_TRUE(cluster.WaitUntilReady());
    const auto seat = SitOnTheOther(cluster);
    act = [&] { cluster.StopOtherVerifier(0); };
    const Result result = Generate(cluster, Greedy({5}, 100, k));
    ExpectEndsAtTheMemory(result);
    // Drafts take none of it that the text still needs.
    EXPECT_EQ(result.tokens, PlainGreedy({5}, kSmall, kVocab)) << "K = " << k;
  }
}

}  // namespace
}  // namespace outrider::testing
