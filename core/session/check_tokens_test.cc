// SPDX-License-Identifier: Apache-2.0
#include "core/session/check_tokens.h"

#include <limits>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int kVocabSize = 10;
constexpr int kContext = 4;

TEST(CheckTokensTest, NamesTheFirstTokenOutsideTheVocabulary) {
  EXPECT_THAT(CheckTokens({0, 9}, kVocabSize), IsOk());
  EXPECT_THAT(CheckTokens({}, kVocabSize), IsOk());
  EXPECT_THAT(CheckTokens({0, 10, 11}, kVocabSize),
              StatusIs(kInvalid, HasSubstr("token id 10 ")));
  EXPECT_THAT(CheckTokens({-1}, kVocabSize),
              StatusIs(kInvalid, HasSubstr("token id 4294967295 ")));
  EXPECT_THAT(CheckTokens({std::numeric_limits<TokenId>::min()}, kVocabSize),
              StatusIs(kInvalid, HasSubstr("token id 2147483648 ")));
}

TEST(CheckDeltaTest, NeedsATokenToAppendAndRoomForAll) {
  EXPECT_THAT(CheckDelta({0, {1}}, kVocabSize, kContext), IsOk());
  EXPECT_THAT(CheckDelta({3, {1}}, kVocabSize, kContext), IsOk());
  EXPECT_THAT(CheckDelta({0, {}}, kVocabSize, kContext), StatusIs(kInvalid));
  EXPECT_THAT(CheckDelta({-1, {1}}, kVocabSize, kContext), StatusIs(kInvalid));
  EXPECT_THAT(CheckDelta({4, {1}}, kVocabSize, kContext),
              StatusIs(kInvalid, HasSubstr("context ends at 4")));
  EXPECT_THAT(CheckDelta({0, {10}}, kVocabSize, kContext), StatusIs(kInvalid));
}

TEST(CheckDeltaTest, DraftsTakeUpContextThatEndsWhereItEnds) {
  EXPECT_THAT(CheckDelta({2, {1}}, kVocabSize, kContext, /*num_drafts=*/1),
              IsOk());
  EXPECT_THAT(
      CheckDelta({3, {1}}, kVocabSize, kContext, /*num_drafts=*/1),
      StatusIs(kInvalid, HasSubstr("has 4 tokens and 1 that follow, the "
                                   "model's context ends at 4")));
}

TEST(CheckDeltaTest, LengthsNearTheLimitOfIntDoNotOverflow) {
  EXPECT_THAT(CheckDelta({std::numeric_limits<int>::max(), {1, 2, 3}},
                         kVocabSize, std::numeric_limits<int>::max()),
              StatusIs(kInvalid));
}

TEST(CheckPromptLengthTest, APromptIsAPartOfTheText) {
  EXPECT_TRUE(CheckPromptLength(0, 3).ok());
  EXPECT_TRUE(CheckPromptLength(3, 3).ok());
  EXPECT_EQ(CheckPromptLength(4, 3).code(), kInvalid);
  EXPECT_EQ(CheckPromptLength(-1, 3).code(), kInvalid);
}

}  // namespace
}  // namespace outrider
