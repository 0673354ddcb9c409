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

absl::StatusOr<GenerationRequest> ParseText(const std::string& text,
                                            const TokenSeq& prefix) {
  TokenizerSpec spec;
  spec.bpe.tokens = {"a", "<s>"};
  spec.prefix = prefix;
  const BpeTokenizer tokenizer(spec);
  v1::GenerateRequest proto;
  proto.set_text(text);
  return ParseRequest(proto, {.tokenizer = &tokenizer,
                              .vocab_size = 2,
                              .context_length = 100,
                              .longest_text = 100,
                              .reply_formats = {ReplyFormat::kTokens},
                              .rules = {RuleKind::kRejection}});
}

TEST(PromptTest, AnEmptyTextIsWhatItsTokenizerAddsToIt) {
  const auto request = ParseText("", /*prefix=*/{1});
  ASSERT_THAT(request, IsOk());
  EXPECT_THAT(request->prompt, ElementsAre(1));
  EXPECT_THAT(ParseText("", /*prefix=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the prompt is empty")));
}

}  // namespace
}  // namespace outrider
