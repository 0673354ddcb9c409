// SPDX-License-Identifier: Apache-2.0
#include "core/node/describe_model.h"

#include <optional>

#include "core/testing/status_matchers.h"
#include "core/tokenizer/bpe_tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// It has the ids 0 to 2, of which the last is an added one.
BpeTokenizer ThreeTokens(std::optional<TokenId> eos_id = std::nullopt) {
  TokenizerSpec spec;
  spec.bpe.tokens = {"a", "b"};
  spec.added_tokens = {{.id = 2, .content = "</s>", .special = true}};
  return BpeTokenizer(spec, eos_id);
}

TEST(DescribeModelTest, TextsEndAtTheTokenizersOwnTokenToo) {
  const auto eos_ids = [](std::optional<TokenId> own, const TokenSeq& ids) {
    return DescribeModel(ThreeTokens(own), {.vocab_size = 3, .eos_ids = ids})
        .eos_ids;
  };
  EXPECT_THAT(eos_ids(2, {}), ElementsAre(2));
  EXPECT_THAT(eos_ids(2, {0}), ElementsAre(0, 2));
  EXPECT_THAT(eos_ids(2, {2, 0}), ElementsAre(2, 0));
  EXPECT_THAT(eos_ids(std::nullopt, {0}), ElementsAre(0));
}

TEST(DescribeModelTest, AModelWhoseTextsNeverEndIsWarnedOf) {
  const auto logged = [](const TokenSeq& ids) {
    ::testing::internal::CaptureStderr();
    WarnOfEndlessTexts({.model_name = "endless", .eos_ids = ids});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(logged({}),
              AllOf(HasSubstr(" W endless "), HasSubstr("eos_token_id")));
  EXPECT_EQ(logged({0}), "");
}

TEST(CheckHeadCoversTest, AHeadMayHaveMoreRowsThanTheTokenizerHasIds) {
  EXPECT_THAT(CheckHeadCovers(ThreeTokens(), {.vocab_size = 3, .eos_ids = {2}}),
              IsOk());
  EXPECT_THAT(
      CheckHeadCovers(ThreeTokens(), {.vocab_size = 64, .eos_ids = {2, 0}}),
      IsOk());
  EXPECT_THAT(CheckHeadCovers(ThreeTokens(), {.vocab_size = 64}), IsOk());
}

TEST(CheckHeadCoversTest, AHeadWithFewerRowsIsOfAnotherModel) {
  EXPECT_THAT(CheckHeadCovers(ThreeTokens(), {.vocab_size = 2}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("ids up to 2"), HasSubstr("only 2"))));
}

// It is a row of the padding, which no node offers.
TEST(CheckHeadCoversTest, AnEndOfTextThatTheTokenizerLacksIsNamed) {
  EXPECT_THAT(
      CheckHeadCovers(ThreeTokens(), {.vocab_size = 64, .eos_ids = {2, 3}}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("eos_token_id 3"),
                     HasSubstr("tokenizer.json, whose ids end at 2"),
                     HasSubstr("generation_config.json"))));
}

}  // namespace
}  // namespace outrider
