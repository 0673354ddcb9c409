// SPDX-License-Identifier: Apache-2.0
#include "core/wire/reply_parts.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;

constexpr int kNumTokens = 10;
constexpr TokenId kUnknown = kNumTokens;

VerifyReply Judged(TokenId next, std::vector<TokenId> more,
                   std::vector<TokenId> top) {
  return {.outcome = Verdict{.next_token = next},
          .logprobs = {RowScores{.top_ids = std::move(top)}},
          .more_tokens = std::move(more)};
}

VerifyReply WithTail(double tail_mass, std::optional<TokenId> tail_token) {
  const auto row =
      TargetRow::FromParts({3}, {1 - tail_mass}, tail_mass, tail_token);
  return {.outcome = std::vector<TargetRow>{*row}};
}

TEST(CheckVocabularyTest, EachTokenThatTheVerifierNamesMustBeKnown) {
  EXPECT_THAT(CheckVocabulary(Judged(9, {0, 9}, {9}), kNumTokens), IsOk());
  for (const VerifyReply& reply :
       {Judged(kUnknown, {}, {}), Judged(-1, {}, {}),
        Judged(1, {2, kUnknown}, {}), Judged(1, {}, {2, kUnknown})}) {
    EXPECT_THAT(CheckVocabulary(reply, kNumTokens),
                StatusIs(absl::StatusCode::kInternal));
  }
}

TEST(CheckVocabularyTest, TokensOfTailsMustBeKnown) {
  EXPECT_THAT(CheckVocabulary(WithTail(0, {}), kNumTokens), IsOk());
  EXPECT_THAT(CheckVocabulary(WithTail(0.5, 9), kNumTokens), IsOk());
  EXPECT_THAT(CheckVocabulary(WithTail(0.5, kUnknown), kNumTokens),
              StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace outrider
