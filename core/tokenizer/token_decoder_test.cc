// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/token_decoder.h"

#include <gtest/gtest.h>

#include "absl/types/span.h"

namespace outrider {
namespace {

TokenizerSpec ByteLevelSpec() {
  TokenizerSpec spec;
  // The bytes of 😀, F0 9F 98 80, are ð Ł ĺ Ģ.
  spec.bpe.tokens = {"a", "Ġb", "ð", "ŁĺĢ", "<s>", std::nullopt, "▁"};
  spec.added_tokens = {{.id = 4, .content = "<s>", .special = true},
                       {.id = 7, .content = "<t> x", .special = false}};
  return spec;
}

TokenizerSpec PiecesSpec() {
  TokenizerSpec spec;
  spec.bpe.tokens = {"▁a", "b▁", "<0xC3>", "<0xA9>", "</s>", "▁"};
  spec.added_tokens = {{.id = 4, .content = "</s>", .special = true}};
  spec.decoder = {.kind = DecoderSpec::Kind::kPieces,
                  .pattern = "▁",
                  .content = " ",
                  .byte_fallback = true,
                  .strip = " ",
                  .max_stripped = 1};
  return spec;
}

std::string Decoded(const TokenizerSpec& spec, absl::Span<const TokenId> ids) {
  const TokenDecoder decoder(spec);
  const auto stream = decoder.NewStream();
  std::string text;
  for (const TokenId id : ids) text += stream->Append(id);
  return text + stream->Finish();
}

TEST(TokenDecoderTest, ACharacterAppearsWithItsLastByte) {
  const TokenDecoder decoder(ByteLevelSpec());
  const auto stream = decoder.NewStream();
  EXPECT_EQ(stream->Append(0), "a");
  EXPECT_EQ(stream->Append(2), "");
  EXPECT_EQ(stream->Append(3), "😀");
  EXPECT_EQ(stream->Append(2), "");
  EXPECT_EQ(stream->Append(1), "\uFFFD b");
  EXPECT_EQ(stream->Append(2), "");
  EXPECT_EQ(stream->Finish(), "\uFFFD");
}

TEST(TokenDecoderTest, SpecialAndUnusedIdsAreNothing) {
  EXPECT_EQ(Decoded(ByteLevelSpec(), {4, 0, 5, -1, 8, 1 << 30, 1}), "a b");
  // Not even between the bytes of a character.
  EXPECT_EQ(Decoded(ByteLevelSpec(), {2, 4, 3}), "😀");
}

TEST(TokenDecoderTest, TokensOutsideTheByteAlphabetStandForThemselves) {
  EXPECT_EQ(Decoded(ByteLevelSpec(), {7, 6}), "<t> x▁");
  EXPECT_EQ(TokenDecoder(ByteLevelSpec()).vocab_size(), 8);
}

TEST(TokenDecoderTest, OneSpaceIsStrippedFromTheStartOfTheText) {
  EXPECT_EQ(Decoded(PiecesSpec(), {0, 0, 1}), "a ab ");
  EXPECT_EQ(Decoded(PiecesSpec(), {5, 5, 0}), "  a");
  EXPECT_EQ(Decoded(PiecesSpec(), {1, 0}), "b  a");
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 3, 0}), "é a");
}

TEST(TokenDecoderTest, ARunOfByteTokensIsValidAsAWholeOrNotAtAll) {
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 3, 2, 3}), "éé");
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 3, 2}), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 4, 3}), "é");
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 0, 3}), "\uFFFD a\uFFFD");
}

TEST(TokenDecoderTest, MetaspaceDropsTheReplacementInTheFirstToken) {
  TokenizerSpec spec = PiecesSpec();
  spec.decoder = {
      .kind = DecoderSpec::Kind::kMetaspace, .pattern = "▁", .content = " "};
  EXPECT_EQ(Decoded(spec, {4, 0, 0, 1}), "a ab ");
  EXPECT_EQ(Decoded(spec, {1, 0}), "b a");
}

}  // namespace
}  // namespace outrider
