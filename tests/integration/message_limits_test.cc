// SPDX-License-Identifier: Apache-2.0
// Vocabularies and contexts of real models, over real gRPC.
#include <string>

#include "core/rpc/channel.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

constexpr int kRealVocab = 128'256;
constexpr int kRealContext = 262'144;

InProcessCluster::Options RealSizes() {
  InProcessCluster::Options options;
  options.target = {.table =
                        [](absl::Span<const TokenId> context) {
                          return HashTarget(context, kRealVocab);
                        },
                    .vocab_size = kRealVocab,
                    .context_length = kRealContext};
  options.draft = {.table =
                       [](absl::Span<const TokenId> context) {
                         return HashDraft(context, kRealVocab);
                       },
                   .vocab_size = kRealVocab,
                   .context_length = kRealContext};
  return options;
}

void ExpectTokens(const Result& result,
                  const client::GenerationRequest& request) {
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.tokens.size(), *request.max_tokens);
  ASSERT_TRUE(result.finish.has_value());
  EXPECT_EQ(result.finish->num_draft_failures, 0);
}

// With the seed, drafts stand in the first round that has any: a drafter whose
// rows take longer than they save is left alone after it.
void ExpectWholeRowsAreDraftedAndJudged(InProcessCluster::Options options,
                                        ReplyFormat format) {
  DrafterFirst drafter_first;
  options.target.table = drafter_first.Around(options.target.table);
  InProcessCluster cluster(options);
  drafter_first.Watch(cluster);
  ASSERT_TRUE(cluster.WaitUntilReady());
  client::GenerationRequest request = {.prompt = TokenSeq(9, 7),
                                       .seed = 5,
                                       .max_tokens = 8,
                                       .num_speculative_tokens = 4,
                                       .reply_format = format};
  request.draft_options.support_size = kRealVocab;
  const Result result = Generate(cluster, request);
  EXPECT_GT(result.num_accepted, 0);
  ExpectTokens(result, request);
}

TEST(MessageLimitsTest, WholeRowsOfARealVocabularyAreDraftedAndJudged) {
  for (const ReplyFormat format :
       {ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    ExpectWholeRowsAreDraftedAndJudged(RealSizes(), format);
  }
}

TEST(MessageLimitsTest, APromptMayFillALongContext) {
  InProcessCluster cluster(RealSizes());
  ASSERT_TRUE(cluster.WaitUntilReady());
  const client::GenerationRequest request =
      Greedy(TokenSeq(kRealContext - 8, 7), /*num_tokens=*/6, /*k=*/4);
  ExpectTokens(Generate(cluster, request), request);
}

TEST(MessageLimitsTest, RepliesMayBeLargerThanTheFirstChannelAccepts) {
  InProcessCluster::Options options = RealSizes();
  options.max_reply_bytes = 1 << 20;  // two rows in float32
  ExpectWholeRowsAreDraftedAndJudged(options, ReplyFormat::kFull);
}

}  // namespace
}  // namespace outrider::testing
