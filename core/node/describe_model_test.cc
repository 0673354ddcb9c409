// SPDX-License-Identifier: Apache-2.0
#include "core/node/describe_model.h"

#include "core/testing/status_matchers.h"
#include "core/tokenizer/bpe_tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// It has the ids 0 to 2, of which the last is an added one.
BpeTokenizer ThreeTokens() {
  TokenizerSpec spec;
  spec.bpe.tokens = {"a", "b"};
  spec.added_tokens = {{.id = 2, .content = "</s>", .special = true}};
  return BpeTokenizer(spec);
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
