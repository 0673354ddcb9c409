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

std::string Decoded(const TokenizerSpec& spec, absl::Span<const TokenId> ids,
                    absl::Span<const TokenId> before = {}) {
  const TokenDecoder decoder(spec);
  const auto stream = decoder.NewStream(before);
  std::string text;
  for (const TokenId id : ids) text += stream->Append(id);
  return text + stream->Finish();
}

TEST(TokenDecoderTest, ACharacterAppearsWithItsLastByte) {
  const TokenDecoder decoder(ByteLevelSpec());
  const auto stream = decoder.NewStream({});
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

TEST(TokenDecoderTest, ByteTokensAreTextOnceTheyAreACharacter) {
  const TokenDecoder decoder(PiecesSpec());
  const auto stream = decoder.NewStream({});
  EXPECT_EQ(stream->Append(2), "");
  EXPECT_EQ(stream->Append(4), "");  // not even this ends a run
  EXPECT_EQ(stream->Append(3), "é");
  EXPECT_EQ(stream->Append(2), "");
  EXPECT_EQ(stream->Append(3), "é");
  EXPECT_EQ(stream->Append(2), "");
  EXPECT_EQ(stream->Append(0), "\uFFFD a");
  EXPECT_EQ(stream->Append(2), "");
  EXPECT_EQ(stream->Finish(), "\uFFFD");
}

// One invalid byte spoils its run, as in the reference, but what was told
// stays.
TEST(TokenDecoderTest, FromAnInvalidByteOnEachByteOfARunIsReplaced) {
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 2, 3}), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Decoded(PiecesSpec(), {3, 2, 3, 0}), "\uFFFD\uFFFD\uFFFD a");
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 3, 2}), "é\uFFFD");
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 3, 3, 2, 3}), "é\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Decoded(PiecesSpec(), {2, 0, 3}), "\uFFFD a\uFFFD");
  // The next run is a new one.
  EXPECT_EQ(Decoded(PiecesSpec(), {3, 0, 2, 3}), "\uFFFD aé");
  // A replacement that is spelled out is a character like others.
  TokenizerSpec spec = PiecesSpec();
  spec.bpe.tokens = {"<0xEF>", "<0xBF>", "<0xBD>"};
  spec.added_tokens.clear();
  EXPECT_EQ(Decoded(spec, {0, 1, 2, 0, 1, 2}), "\uFFFD\uFFFD");
}

TEST(TokenDecoderTest, OnlyTheWholeTextsStartIsStrippedAndNotWhatFollows) {
  EXPECT_EQ(Decoded(PiecesSpec(), {0, 0}, /*before=*/{0}), " a a");
  EXPECT_EQ(Decoded(PiecesSpec(), {0, 0}, /*before=*/{1}), " a a");
  EXPECT_EQ(Decoded(PiecesSpec(), {0}, /*before=*/{2, 3}), " a");
  EXPECT_EQ(Decoded(PiecesSpec(), {0}, /*before=*/{0, 4}), " a");
  // The text of these is nothing, so the whole begins after them.
  EXPECT_EQ(Decoded(PiecesSpec(), {0, 0}, /*before=*/{4, -1}), "a a");
  // The text of this one is the blank that is stripped.
  EXPECT_EQ(Decoded(PiecesSpec(), {0}, /*before=*/{5}), " a");
}

TEST(TokenDecoderTest, ACharacterThatBeginsBeforeComesWithItsLastByte) {
  EXPECT_EQ(Decoded(PiecesSpec(), {3, 0}, /*before=*/{0, 2}), "é a");
  EXPECT_EQ(Decoded(ByteLevelSpec(), {3, 0}, /*before=*/{0, 2}), "😀a");
}

// The text of what is before ends with its replacement.
TEST(TokenDecoderTest, HalfACharacterBeforeThatNeverBecomesOneIsNotToldAgain) {
  const TokenizerSpec bytes = ByteLevelSpec();
  EXPECT_EQ(Decoded(bytes, {}, /*before=*/{0, 2}), "");
  EXPECT_EQ(Decoded(bytes, {4, 0}, /*before=*/{0, 2}), "a");
  EXPECT_EQ(Decoded(bytes, {2, 3}, /*before=*/{2}), "😀");
  EXPECT_EQ(Decoded(bytes, {2, 0}, /*before=*/{2}), "\uFFFDa");
  EXPECT_EQ(Decoded(bytes, {2}, /*before=*/{2}), "\uFFFD");
  const TokenizerSpec pieces = PiecesSpec();
  EXPECT_EQ(Decoded(pieces, {}, /*before=*/{0, 2}), "");
  EXPECT_EQ(Decoded(pieces, {4, 0}, /*before=*/{0, 2}), " a");
  EXPECT_EQ(Decoded(pieces, {2, 3}, /*before=*/{2}), "\uFFFD\uFFFD");
  // The text does not begin with this blank: the replacement is before it.
  EXPECT_EQ(Decoded(pieces, {0}, /*before=*/{2}), " a");
}

TEST(TokenDecoderTest, MetaspaceDropsTheReplacementInTheFirstToken) {
  TokenizerSpec spec = PiecesSpec();
  spec.decoder = {
      .kind = DecoderSpec::Kind::kMetaspace, .pattern = "▁", .content = " "};
  EXPECT_EQ(Decoded(spec, {4, 0, 0, 1}), "a ab ");
  EXPECT_EQ(Decoded(spec, {1, 0}), "b a");
  EXPECT_EQ(Decoded(spec, {0, 1}, /*before=*/{0}), " ab ");
  EXPECT_EQ(Decoded(spec, {0, 1}, /*before=*/{4}), "ab ");
}

}  // namespace
}  // namespace outrider
