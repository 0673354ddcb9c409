// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/status_matchers.h"
#include "core/tokenizer/bpe_tokenizer.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<GenerationRequest> ParseWith(const v1::GenerateRequest& proto,
                                            const TokenSeq& prefix) {
  TokenizerSpec spec;
  spec.bpe.tokens = {"a", "<s>"};
  spec.prefix = prefix;
  const BpeTokenizer tokenizer(spec);
  return ParseRequest(proto, {.tokenizer = &tokenizer,
                              .vocab_size = 2,
                              .context_length = 100,
                              .longest_text = 100,
                              .reply_formats = {ReplyFormat::kTokens},
                              .rules = {RuleKind::kRejection}});
}

absl::StatusOr<GenerationRequest> ParseText(const std::string& text,
                                            const TokenSeq& prefix) {
  v1::GenerateRequest proto;
  proto.set_text(text);
  return ParseWith(proto, prefix);
}

TEST(PromptTest, AnEmptyTextIsWhatItsTokenizerAddsToIt) {
  const auto request = ParseText("", /*prefix=*/{1});
  ASSERT_THAT(request, IsOk());
  EXPECT_THAT(request->prompt, ElementsAre(1));
  EXPECT_THAT(ParseText("", /*prefix=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the prompt is empty")));
}

TEST(PromptTest, WhoseTextIsGoneIsReadToTheSameTokensAgain) {
  v1::GenerateRequest proto;
  proto.set_text("aaa");
  const auto request = ParseWith(proto, /*prefix=*/{1});
  ASSERT_THAT(request, IsOk());
  EXPECT_THAT(request->prompt, ElementsAre(1, 0, 0, 0));
  KeepTokens(request->prompt, proto);
  EXPECT_FALSE(proto.has_text());
  const auto again = ParseWith(proto, /*prefix=*/{1});
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->prompt, request->prompt);
}

}  // namespace
}  // namespace outrider
