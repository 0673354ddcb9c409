// SPDX-License-Identifier: Apache-2.0
// The three services over real gRPC, in one process, on table models.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/long_stream.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ClusterTest, SixteenStreamsAtOnceEachEqualPlainDecoding) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  std::vector<std::jthread> callers;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&, i] {
      const TokenSeq prompt(1 + 3 * i, i);
      const int num_tokens = 100 + 10 * i;
      const Result result =
          Generate(cluster, Greedy(prompt, num_tokens, /*k=*/i % 9));
      EXPECT_THAT(result.status, IsOk());
      EXPECT_EQ(result.tokens, PlainGreedy(prompt, num_tokens, kVocab));
      ASSERT_TRUE(result.finish.has_value());
      EXPECT_EQ(result.finish->reason, FinishReason::kLength);
      EXPECT_EQ(result.finish->num_misses, 0);
      EXPECT_EQ(result.finish->num_draft_failures, 0);
    });
  }
}

// It does so under the coupled rule, whichever rounds have drafts.
TEST(ClusterTest, OneSeedGivesOneStreamAndAnotherSeedAnother) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  client::GenerationRequest request = Greedy({1, 2, 3}, 60, /*k=*/4);
  request.temperature = 1.0;
  request.acceptance_rule = RuleKind::kCoupled;
  request.seed = 7;
  const Result first = Generate(cluster, request);
  const Result again = Generate(cluster, request);
  request.seed = 8;
  const Result other = Generate(cluster, request);
  EXPECT_EQ(first.tokens.size(), 60u);
  EXPECT_EQ(first.tokens, again.tokens);
  EXPECT_NE(first.tokens, other.tokens);
}

// Greedy plain decoding with a repetition penalty, in a few lines of its own.
TokenSeq PenalisedGreedy(TokenSeq text, int num_tokens, double penalty) {
  const size_t prompt_length = text.size();
  while (text.size() < prompt_length + num_tokens) {
    const std::vector<float> logits = HashTarget(text, kVocab);
    std::vector<double> row(logits.begin(), logits.end());
    for (TokenId id = 0; id < kVocab; ++id) {
      if (std::find(text.begin(), text.end(), id) == text.end()) continue;
      row[id] = row[id] > 0 ? row[id] / penalty : row[id] * penalty;
    }
    text.push_back(static_cast<TokenId>(
        std::max_element(row.begin(), row.end()) - row.begin()));
  }
  return {text.begin() + prompt_length, text.end()};
}

TEST(ClusterTest, PenaltiesGiveTheTextOfPlainDecodingForEveryKAndFormat) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  const TokenSeq expected = PenalisedGreedy({1, 2, 3}, 60, 1.3);
  EXPECT_NE(expected, PlainGreedy({1, 2, 3}, 60, kVocab));
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    for (const int k : {0, 1, 4, 8}) {
      client::GenerationRequest request = Greedy({1, 2, 3}, 60, k);
      request.repetition_penalty = 1.3;
      request.reply_format = format;
      const Result result = Generate(cluster, request);
      EXPECT_THAT(result.status, IsOk());
      EXPECT_EQ(result.tokens, expected) << "K = " << k;
    }
  }
}

TEST(ClusterTest, ADrafterThatDiesInAStreamCostsSpeedOnly) {
  InProcessCluster cluster(LongStream::Cluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  LongStream stream(cluster);
  ASSERT_TRUE(stream.ReadUntilNumAccepted(10));
  cluster.StopDrafter();
  ASSERT_TRUE(stream.ReadUntil([num_plain = 0](const RoundStats& r) mutable {
    num_plain += r.num_drafted == 0;
    return num_plain == 300;
  }));
  stream.ExpectPlain();
}

TEST(ClusterTest, ADrafterThatRestartsIsFilledAgainAndDraftsOn) {
  InProcessCluster cluster(LongStream::Cluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  LongStream stream(cluster);
  ASSERT_TRUE(stream.ReadUntilNumAccepted(10));
  cluster.StopDrafter();
  cluster.StartDrafter();
  NodeCounters& anew = cluster.drafter().counters();
  ASSERT_TRUE(stream.ReadUntil([&anew](const RoundStats& round) {
    return round.num_accepted > 0 &&
           anew.num_finished(NodeCall::kModel, absl::StatusCode::kOk) > 10;
  }));
  stream.ExpectPlain();
}

TEST(ClusterTest, AVerifierThatRestartsInAStreamIsNoError) {
  std::function<void()> act;
  InProcessCluster::Options options = SmallCluster();
  options.draft.table = ActInRound(options.draft.table, 2, act);
  DrafterFirst drafter_first;
  options.target.table = drafter_first.Around(options.target.table);
  InProcessCluster cluster(options);
  drafter_first.Watch(cluster);
  ASSERT_TRUE(cluster.WaitUntilReady());
  act = [&] {
    cluster.StopVerifier();
    cluster.StartVerifier();
  };
  const Result result = Generate(cluster, Greedy({5}, 200, /*k=*/4));
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.tokens, PlainGreedy({5}, 200, kVocab));
  EXPECT_EQ(result.finish->num_misses, 1);
}

TEST(ClusterTest, AVerifierThatComesBackWithOtherWeightsEndsTheStream) {
  std::function<void()> act;
  InProcessCluster::Options options = SmallCluster();
  options.draft.table = ActInRound(options.draft.table, 2, act);
  DrafterFirst drafter_first;
  options.target.table = drafter_first.Around(options.target.table);
  InProcessCluster cluster(options);
  drafter_first.Watch(cluster);
  ASSERT_TRUE(cluster.WaitUntilReady());
  act = [&] {
    cluster.StopVerifier();
    cluster.StartVerifier(/*weights_hash=*/"others");
  };
  const Result result = Generate(cluster, Greedy({5}, 200, /*k=*/4));
  EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kAborted,
                                      HasSubstr("send the request again")));
  // Nothing of the other model's has come.
  TokenSeq expected = PlainGreedy({5}, 200, kVocab);
  expected.resize(result.tokens.size());
  EXPECT_EQ(result.tokens, expected);
}

TEST(ClusterTest,
     AStreamThatHasNothingYetBeginsOnTheModelThatTookItsOwnsPlace) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  // The coordinator knows it as what it was when it was last asked.
  cluster.StopVerifier();
  cluster.StartVerifier(/*weights_hash=*/"others");
  // It may have been asked while it was away.
  ASSERT_TRUE(cluster.WaitUntilReady());
  const Result result = Generate(cluster, Greedy({5}, 50, /*k=*/4));
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.tokens, PlainGreedy({5}, 50, kVocab));
  EXPECT_EQ(result.start->model.weights_hash, "others");
}

TEST(ClusterTest, AResumedStreamGoesOnFromWhatItsVerifierStillHas) {
  InProcessCluster::Options options = SmallCluster();
  options.other_targets = {options.target, options.target};
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const TokenSeq prompt(70, 5);
  const client::GenerationRequest request = Greedy(prompt, 400, /*k=*/4);
  const auto begun =
      cluster.client().Generate(request, std::chrono::minutes(1));
  while (begun->ResumeRequest().delivered->size() < 20) {
    ASSERT_THAT(begun->Next(), IsOk());
  }
  client::GenerationRequest resume = begun->ResumeRequest();
  EXPECT_NE(resume.cache_salt, "");
  begun->Cancel();
  const auto num_sessions = [&] {
    return cluster.verifier().num_sessions() +
           cluster.other_verifier(0).num_sessions() +
           cluster.other_verifier(1).num_sessions();
  };
  while (num_sessions() > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  const Result rest = Generate(cluster, resume);
  TokenSeq all = *resume.delivered;
  all.insert(all.end(), rest.tokens.begin(), rest.tokens.end());
  EXPECT_EQ(all, PlainGreedy(prompt, 400, kVocab));
  // All full blocks of the prompt, whose end and the delivered tokens are more.
  EXPECT_GE(rest.start->num_cached_prompt_tokens, 64);
  // It was told nothing that it knew, and what has come to its end is gone.
  EXPECT_EQ(rest.start->cache_salt, "");
  EXPECT_EQ(Generate(cluster, request).start->num_cached_prompt_tokens, 0);
}

// Its verifier came back as another model, as after a rollout in between.
TEST(ClusterTest, AStreamIsResumedOnlyOnTheModelThatItBeganOn) {
  InProcessCluster::Options options = SmallCluster();
  options.resume_patience = std::chrono::milliseconds(100);
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const ModelIdentity model = {
      .weights_hash = "0", .dtype = "float32", .numerics = "table"};
  client::GenerationRequest request = Greedy({5}, 8, /*k=*/4);
  const Result whole = Generate(cluster, request);
  ASSERT_THAT(whole.status, IsOk());
  EXPECT_EQ(whole.start->model, model);
  request.seed = whole.start->seed;
  request.delivered = {whole.tokens.begin(), whole.tokens.begin() + 3};
  request.model = model;
  EXPECT_EQ(Generate(cluster, request).tokens,
            TokenSeq(whole.tokens.begin() + 3, whole.tokens.end()));

  const auto resumed_as = [&](const ModelIdentity& other) {
    request.model = other;
    return Generate(cluster, request).status;
  };
  ModelIdentity other = model;
  other.weights_hash = "1";
  EXPECT_THAT(resumed_as(other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its weights are 0, not 1")));
  other = model;
  other.dtype = "bfloat16";
  EXPECT_THAT(resumed_as(other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its number type is float32, not bfloat16")));
  other = model;
  other.numerics = "other";
  EXPECT_THAT(resumed_as(other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its kernels are table, not other")));
  // A sampled text has the same law with other kernels.
  request.temperature = 1;
  EXPECT_THAT(resumed_as(other), IsOk());
}

TEST(ClusterTest, AClientThatHangsUpFreesBothCaches) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  {
    const auto stream = cluster.client().Generate(Greedy({5}, 500, /*k=*/4),
                                                  std::chrono::minutes(1));
    // It goes into the second round; release_test.cc has those cancelled
    // before.
    for (int num_tokens = 0; num_tokens < 2;) {
      const auto update = stream->Next();
      ASSERT_THAT(update, IsOk());
      num_tokens += static_cast<int>((*update)->tokens.size());
    }
  }
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (cluster.verifier().num_sessions() + cluster.drafter().num_sessions() >
             0 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(cluster.verifier().num_sessions(), 0);
  EXPECT_EQ(cluster.drafter().num_sessions(), 0);
}

TEST(ClusterTest, ANonFiniteRowFailsItsSessionAlone) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  std::jthread neighbour([&] {
    const Result result = Generate(cluster, Greedy({5}, 300, /*k=*/4));
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens, PlainGreedy({5}, 300, kVocab));
  });
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    client::GenerationRequest request = Greedy({kPoison}, 10, /*k=*/4);
    request.reply_format = format;
    EXPECT_THAT(Generate(cluster, request).status,
                StatusIs(absl::StatusCode::kInternal));
  }
}

TEST(ClusterTest, ADrafterWithAnotherTokenizerIsRefusedAndDecodingIsPlain) {
  InProcessCluster::Options options = SmallCluster();
  options.drafter_tokenizer_hash = "another";
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const Result result = Generate(cluster, Greedy({5}, 30, /*k=*/4));
  EXPECT_EQ(result.tokens, PlainGreedy({5}, 30, kVocab));
  EXPECT_EQ(result.num_accepted, 0);
  const auto deployment = cluster.client().Describe(std::chrono::seconds(5));
  ASSERT_THAT(deployment, IsOk());
  EXPECT_THAT(deployment->drafters, IsEmpty());
  ASSERT_EQ(deployment->refused_drafters.size(), 1u);
  EXPECT_THAT(deployment->refused_drafters[0], HasSubstr("tokenizer"));
}

TEST(ClusterTest, WithoutAVerifierRequestsAreUnavailableUntilOneComes) {
  InProcessCluster::Options options = SmallCluster();
  options.start_verifier = false;
  InProcessCluster cluster(options);
  EXPECT_THAT(Generate(cluster, Greedy({5}, 30, /*k=*/4)).status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("verifier")));
  cluster.StartVerifier();
  ASSERT_TRUE(cluster.WaitUntilReady());
  EXPECT_THAT(Generate(cluster, Greedy({5}, 30, /*k=*/4)).status, IsOk());
}

TEST(ClusterTest, ACoordinatorThatDrainsDoesNotDescribeItself) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  EXPECT_THAT(cluster.client().Describe(std::chrono::seconds(5)), IsOk());
  EXPECT_TRUE(cluster.service().Drain(std::chrono::seconds(0)));
  EXPECT_THAT(
      cluster.client().Describe(std::chrono::seconds(5)).status(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("shutting down")));
}

TEST(ClusterTest, OneSessionTooManyIsToldToComeLater) {
  Hold hold;
  std::function<void()> act;
  InProcessCluster::Options options = SmallCluster();
  options.max_sessions = 1;
  options.target.table = ActInRound(options.target.table, 20, act);
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  act = [&] { hold.Wait(); };
  std::jthread first([&] {
    const Result result = Generate(cluster, Greedy({5}, 100, /*k=*/1));
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens, PlainGreedy({5}, 100, kVocab));
  });
  hold.AwaitStream();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Generate(cluster, Greedy({6}, 5, /*k=*/1)).status,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("try again later")));
  }
  // What began elsewhere is looked at: it is refused for what it asks.
  client::GenerationRequest resume = Greedy({6}, 5, /*k=*/1);
  resume.seed = 1;
  resume.delivered = TokenSeq{1};
  resume.model = ModelIdentity{.weights_hash = "others"};
  EXPECT_THAT(Generate(cluster, resume).status,
              StatusIs(absl::StatusCode::kFailedPrecondition));
  hold.Release();
  first.join();
  // The place is free once the caches are given back, just after the end.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Result later;
  do {
    later = Generate(cluster, Greedy({6}, 5, /*k=*/1));
  } while (!later.status.ok() && std::chrono::steady_clock::now() < deadline);
  EXPECT_THAT(later.status, IsOk());
}

TEST(ClusterTest, GenerationRunsToTheLastPositionOfTheContextAndNotBeyond) {
  InProcessCluster::Options options = SmallCluster();
  options.target.context_length = 40;
  options.draft.context_length = 30;  // the drafter's ends before
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  client::GenerationRequest request = Greedy({5, 6, 7}, 1, /*k=*/8);
  request.max_tokens.reset();
  const Result result = Generate(cluster, request);
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.tokens, PlainGreedy({5, 6, 7}, 37, kVocab));
  EXPECT_EQ(result.finish->reason, FinishReason::kLength);
}

}  // namespace
}  // namespace outrider::testing
