// SPDX-License-Identifier: Apache-2.0
// What a coordinator refuses, beside a stream that goes on.
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;

TEST(BadRequestsTest, AreRefusedByNameAndHurtNothing) {
  Hold hold;
  std::function<void()> act;
  InProcessCluster::Options options = SmallCluster();
  options.target.table = ActInRound(options.target.table, 50, act);
  DrafterFirst drafter_first;
  options.target.table = drafter_first.Around(options.target.table);
  InProcessCluster cluster(options);
  drafter_first.Watch(cluster);
  ASSERT_TRUE(cluster.WaitUntilReady());
  act = [&] { hold.Wait(); };
  // A good stream that is in its middle while the bad ones come.
  std::jthread neighbour([&] {
    const Result result = Generate(cluster, Greedy({5}, 300, /*k=*/4));
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens, PlainGreedy({5}, 300, kVocab));
    EXPECT_GT(result.num_accepted, 0);
    EXPECT_EQ(result.finish->num_misses, 0);
    EXPECT_EQ(result.finish->num_draft_failures, 0);
  });
  hold.AwaitStream();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto bad = [](std::function<void(client::GenerationRequest&)> spoil) {
    client::GenerationRequest request = Greedy({5}, 5, /*k=*/2);
    spoil(request);
    return request;
  };
  const struct {
    client::GenerationRequest request;
    std::string named;
  } cases[] = {
      {bad([](auto& r) { r.prompt = TokenSeq(); }), "prompt is empty"},
      {bad([](auto& r) { r.prompt = "text"; }), "tokenizer"},
      {bad([](auto& r) { r.prompt = TokenSeq{kVocab}; }), "token id 50"},
      {bad([](auto& r) { r.prompt = TokenSeq{-1}; }), "token id 4294967295"},
      {bad([](auto& r) { r.prompt = TokenSeq(512, 1); }), "context of 512"},
      {bad([](auto& r) { r.num_speculative_tokens = 9; }), "not 9"},
      {bad([&](auto& r) { r.temperature = nan; }), "temperature"},
      {bad([](auto& r) { r.temperature = -1; }), "temperature"},
      {bad([](auto& r) { r.temperature = 10.5; }), "temperature"},
      {bad([](auto& r) { r.top_p = 0; }), "top_p"},
      {bad([&](auto& r) { r.top_p = nan; }), "top_p"},
      {bad([](auto& r) { r.top_k = -1; }), "top_k"},
      {bad([](auto& r) { r.max_tokens = 0; }), "max_tokens"},
      {bad([](auto& r) { r.stop_strings = {"x"}; }), "tokenizer"},
      {bad([](auto& r) { r.stop_token_ids = {kVocab}; }),
       "stop_token_ids: token id 50"},
      {bad([](auto& r) { r.stop_token_ids = {-1}; }), "token id 4294967295"},
      {bad([](auto& r) { r.stop_token_ids = TokenSeq(65, 1); }),
       "at most 64 stop_token_ids, not 65"},
      {bad([](auto& r) { r.draft_options.support_size = 0; }),
       "draft_options.support_size"},
      {bad([](auto& r) { r.draft_options.support_size = 1025; }), "1025"},
      {bad([](auto& r) { r.draft_options.support_mass = 0; }),
       "draft_options.support_mass"},
      {bad([&](auto& r) { r.draft_options.support_mass = nan; }),
       "draft_options.support_mass"},
      {bad([](auto& r) { r.delivered = TokenSeq{1}; }), "seed"},
      {bad([&](auto& r) { r.min_p = nan; }), "min_p"},
      {bad([](auto& r) { r.repetition_penalty = 0; }), "repetition_penalty"},
      {bad([](auto& r) { r.presence_penalty = 2.5; }), "presence_penalty"},
      {bad([&](auto& r) { r.frequency_penalty = nan; }), "frequency_penalty"},
      {bad([](auto& r) {
         r.logit_bias = {{kVocab, 1}};
       }),
       "token id 50"},
      {bad([](auto& r) {
         r.logit_bias = {{-1, 1}};
       }),
       "token id 4294967295"},
      {bad([](auto& r) {
         r.logit_bias = {{-1, 1}, {-1, 2}};
       }),
       "token id 4294967295"},
      {bad([](auto& r) {
         r.logit_bias = {{1, 1}, {1, 2}};
       }),
       "twice"},
      {bad([](auto& r) {
         r.logit_bias = {{1, 101}};
       }),
       "token 1 must be between -100 and 100, not 101"},
      {bad([](auto& r) { r.logprobs = 21; }), "not 21"},
      {bad([](auto& r) { r.lossy_lenience = 0; }), "lossy_lenience"},
      {bad([](auto& r) { r.lossy_lenience = 1.5; }), "not 1.5"},
      {bad([](auto& r) {
         r.lossy_lenience = 0.5;
         r.acceptance_rule = RuleKind::kCoupled;
       }),
       "leave one of the two out"},
      {bad([](auto& r) {
         r.lossy_lenience = 0.5;
         r.acceptance_rule = RuleKind::kBlock;
       }),
       "leave one of the two out"},
      {bad([](auto& r) { r.logprobs_mode = LogprobsMode::kRaw; }),
       "needs logprobs"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        Generate(cluster, c.request).status,
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.named)));
  }
  hold.Release();
  neighbour.join();
  EXPECT_THAT(Generate(cluster, Greedy({5}, 30, /*k=*/4)).status, IsOk());
}

}  // namespace
}  // namespace outrider::testing
