// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/session.h"

#include <set>

#include "core/sampling/coins.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;

Session::Options WithPrompt(TokenSeq prompt) {
  return {.prompt = std::move(prompt), .seed = 5, .max_length = 100};
}

Draft DraftOf(uint64_t start, const TokenSeq& tokens) {
  Draft draft = {.start = start, .tokens = tokens};
  for (const TokenId token : tokens) {
    draft.distributions.push_back(Distribution::OneHot(token));
  }
  return draft;
}

TEST(SessionTest, EveryHeaderHasAStepOfItsOwnOverBothNodes) {
  Session session(WithPrompt({1, 2}));
  std::set<uint64_t> steps;
  for (int i = 0; i < 10; ++i) {
    steps.insert(session.NextHeader(session.drafter_cache()).step);
    steps.insert(session.NextHeader(session.verifier_cache()).step);
  }
  EXPECT_EQ(steps.size(), 20u);
  EXPECT_EQ(*steps.begin(), 1u);
}

// No DRAFT coin of the broken stream comes again then.
TEST(SessionTest, AResumedSessionBeginsFarAboveTheStepsOfTheBrokenOne) {
  Session::Options options = WithPrompt({1, 2});
  options.delivered = {3, 4, 5};
  Session session(std::move(options));
  EXPECT_EQ(session.NextHeader(session.drafter_cache()).step,
            (uint64_t{3} << 32) + 1);
  EXPECT_EQ(session.length(), 5);
  EXPECT_EQ(session.prompt_length(), 2);
}

// Presence and frequency penalties count what was generated, before the stream
// broke as after it.
TEST(SessionTest, AfterAResumeTheDeliveredTokensAreNoPrompt) {
  Session::Options options = WithPrompt({1, 2});
  options.delivered = {3, 4, 5};
  const Session session(std::move(options));
  EXPECT_EQ(session.History().prompt_length, 2);
  EXPECT_THAT(session.History().committed, ElementsAre(1, 2, 3, 4, 5));
}

TEST(SessionTest, HeadersOpenFirstAndThenSendWhatIsMissing) {
  Session session(WithPrompt({1, 2, 3}));
  const RequestHeader open = session.NextHeader(session.verifier_cache());
  EXPECT_EQ(open.session, session.id());
  EXPECT_TRUE(open.incarnation.is_none());
  EXPECT_EQ(open.delta.keep_length, 0);
  EXPECT_THAT(open.delta.append_tokens, ElementsAre(1, 2, 3));
  EXPECT_EQ(open.prefix_hash, 0u);

  const Incarnation life = Incarnation::Random();
  session.verifier_cache().Acknowledged(5, life);
  session.Commit(DraftOf(3, {7, 8}), {1, 9});
  const RequestHeader next = session.NextHeader(session.verifier_cache());
  EXPECT_EQ(next.incarnation, life);
  EXPECT_EQ(next.delta.keep_length, 4);
  EXPECT_THAT(next.delta.append_tokens, ElementsAre(9));
  EXPECT_EQ(next.prefix_hash, session.committed().PrefixHash(4));
}

TEST(SessionTest, OnlyOpeningsSayWithWhomTheyShare) {
  Session::Options options = WithPrompt({1, 2, 3});
  options.cache_salt = "tenant";
  Session session(std::move(options));
  CacheMirror& cache = session.verifier_cache();
  EXPECT_EQ(session.NextHeader(cache).cache_salt, "tenant");
  cache.Acknowledged(3, Incarnation::Random());
  EXPECT_EQ(session.NextHeader(cache).cache_salt, "");
  cache.Forget();
  EXPECT_EQ(session.NextHeader(cache).cache_salt, "tenant");
}

TEST(SessionTest, CommitsTheAcceptedDraftsAndTheNextToken) {
  Session session(WithPrompt({1}));
  session.Commit(DraftOf(1, {4, 5, 6}), {2, 9});
  EXPECT_THAT(session.committed().tokens(), ElementsAre(1, 4, 5, 9));
  session.Commit({.start = 4}, {0, 2});
  EXPECT_THAT(session.committed().tokens(), ElementsAre(1, 4, 5, 9, 2));
}

TEST(SessionTest, DraftsNoMoreThanCanBeUsed) {
  Session::Options options = WithPrompt({1, 2, 3});
  options.max_length = 8;
  Session session(std::move(options));
  // Five tokens to go: four drafts and the next.
  EXPECT_EQ(session.MaxDraftLength(), 4);
  session.Commit(DraftOf(3, {4, 5, 6}), {3, 7});
  EXPECT_EQ(session.MaxDraftLength(), 0);
  EXPECT_FALSE(session.is_complete());
  session.Commit({.start = 7}, {0, 8});
  EXPECT_TRUE(session.is_complete());
  EXPECT_EQ(session.MaxDraftLength(), 0);
}

TEST(SessionTest, ItsCoinsAreThoseOfTheSeed) {
  Session session(WithPrompt({1}));
  Coins coins(5);
  const std::vector<double> weights(64, 1.0);
  for (uint64_t position = 0; position < 8; ++position) {
    const CoinKey key = {Purpose::kTail, position};
    EXPECT_EQ(session.coins().Categorical(key, weights),
              coins.Categorical(key, weights));
  }
}

TEST(SessionTest, IdsAreRandom) {
  EXPECT_NE(Session(WithPrompt({1})).id(), Session(WithPrompt({1})).id());
}

}  // namespace
}  // namespace outrider
