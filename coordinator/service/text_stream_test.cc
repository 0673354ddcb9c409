// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/text_stream.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/tokenizer/bpe_tokenizer.h"
#include "core/tokenizer/byte_alphabet.h"
#include "core/tokenizer/utf8.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

// A byte-level vocabulary: token i contributes the bytes texts[i].
BpeTokenizer ByteLevel(const std::vector<std::string>& texts) {
  TokenizerSpec spec;
  for (const std::string& text : texts) {
    std::string spelled;
    for (const char byte : text) {
      spelled += ByteToAlphabet(static_cast<uint8_t>(byte));
    }
    spec.bpe.tokens.emplace_back(spelled);
  }
  return BpeTokenizer(spec);
}

// One where characters fall back to byte tokens, as in Llama 2.
BpeTokenizer Pieces(const std::vector<std::string>& texts) {
  TokenizerSpec spec;
  spec.bpe.tokens.assign(texts.begin(), texts.end());
  spec.decoder = {.kind = DecoderSpec::Kind::kPieces,
                  .byte_fallback = true,
                  .strip = " ",
                  .max_stripped = 1};
  return BpeTokenizer(spec);
}

// What a client sees of `texts`, each token's piece in brackets, what comes at
// the end after a |, a stop as !.
std::string Streamed(const std::vector<std::string>& texts,
                     std::vector<std::string> stop_strings,
                     bool is_byte_level = true, const TokenSeq& prompt = {}) {
  const BpeTokenizer tokenizer =
      is_byte_level ? ByteLevel(texts) : Pieces(texts);
  TextStream stream(&tokenizer, prompt, std::move(stop_strings));
  std::string seen;
  for (TokenId token = 0; token < static_cast<TokenId>(texts.size()); ++token) {
    const TextStream::Piece piece = stream.Append(token);
    seen += "[" + piece.text + "]";
    if (piece.stopped) return seen + "!";
  }
  const TextStream::Piece last = stream.Finish();
  return seen + "|" + last.text + (last.stopped ? "!" : "");
}

TEST(TextStreamTest, WithoutStopStringsEveryTokensTextComesAtOnce) {
  EXPECT_EQ(Streamed({"a", " b", "c"}, {}), "[a][ b][c]|");
}

TEST(TextStreamTest, AStopInsideATokenCutsBeforeIt) {
  EXPECT_EQ(Streamed({"one", " STOP two"}, {"STOP"}), "[one][ ]!");
}

TEST(TextStreamTest, AStopOverTwoAndThreeTokensIsFoundAndNothingOfItIsSent) {
  EXPECT_EQ(Streamed({"oneST", "OP two"}, {"STOP"}), "[one][]!");
  EXPECT_EQ(Streamed({"oneS", "TO", "Ptwo"}, {"STOP"}), "[one][][]!");
}

TEST(TextStreamTest, ABeginningThatBecomesNoStopIsSentAfterAll) {
  EXPECT_EQ(Streamed({"oneS", "TO", "Rtwo"}, {"STOP"}), "[one][][STORtwo]|");
  EXPECT_EQ(Streamed({"oneS", "TO"}, {"STOP"}), "[one][]|STO");
}

// What failed as one beginning may hold another.
TEST(TextStreamTest, BeginningsThatOverlapAreHeldBackAndReleasedInTurn) {
  EXPECT_EQ(Streamed({"a", "a", "a", "a", "b"}, {"aab"}), "[][][a][a][]!");
  EXPECT_EQ(Streamed({"x", "a", "b", "a", "b", "a", "c"}, {"abac"}),
            "[x][][][][ab][][]!");
  EXPECT_EQ(Streamed({"a", "b", "a", "b", "x"}, {"abac"}), "[][][][ab][abx]|");
}

TEST(TextStreamTest, TheLongestOfSeveralBeginningsIsHeldBack) {
  EXPECT_EQ(Streamed({"xab", "z"}, {"bc", "abd"}), "[x][abz]|");
  EXPECT_EQ(Streamed({"xab", "c"}, {"bc", "abd"}), "[x][a]!");
  EXPECT_EQ(Streamed({"xab", "d"}, {"bc", "abd"}), "[x][]!");
}

TEST(TextStreamTest, OfTwoStopsInOneTokenTheEarliestWins) {
  EXPECT_EQ(Streamed({"one END two STOP"}, {"STOP", "END"}), "[one ]!");
  EXPECT_EQ(Streamed({"one END two STOP"}, {"END", "STOP"}), "[one ]!");
  // Both begin at one place, or one lies in the other: the text is the same.
  EXPECT_EQ(Streamed({"one ENDING"}, {"ENDING", "END"}), "[one ]!");
  EXPECT_EQ(Streamed({"one ENDING"}, {"DING", "ENDING"}), "[one ]!");
}

TEST(TextStreamTest, HalfACharacterIsNeverSent) {
  // é in two tokens, 😀 in three, and a beginning that stays alone.
  EXPECT_EQ(
      Streamed({"a\xC3", "\xA9", "\xF0\x9F", "\x98", "\x80z", "\xC3"}, {}),
      "[a][é][][][😀z][]|\uFFFD");
}

TEST(TextStreamTest, AStopOfManyBytesMayBeginInsideACharactersTokens) {
  EXPECT_EQ(Streamed({"a\xC3", "\xA9", "\xE2\x82", "\xAC", "z"}, {"é€"}),
            "[a][][][]!");
  // Its first byte alone is also the beginning of another character.
  EXPECT_EQ(Streamed({"a\xC3", "\xA8z"}, {"é"}), "[a][èz]|");
}

TEST(TextStreamTest, AStopOfByteTokensStopsAtTheLastOfThem) {
  EXPECT_EQ(Streamed({"a", "<0x0A>", "b"}, {"\n"}, /*is_byte_level=*/false),
            "[a][]!");
  EXPECT_EQ(Streamed({"a", "<0x62>", "<0x0A>"}, {"\n\n", "b\n"},
                     /*is_byte_level=*/false),
            "[a][][]!");
  EXPECT_EQ(Streamed({"a", "<0x0A>"}, {"\n\n"}, /*is_byte_level=*/false),
            "[a][]|\n");
  EXPECT_EQ(Streamed({"a", "<0x0A>", "<0xC3>", "<0xA9>"}, {},
                     /*is_byte_level=*/false),
            "[a][\n][][é]|");
}

TEST(TextStreamTest, AStopThatTheLastBytesCompleteIsAStop) {
  EXPECT_EQ(Streamed({"a", "\xC3"}, {"\uFFFD"}), "[a][]|!");
}

TEST(TextStreamTest, HalfACharacterAtAPromptsEndIsNoStop) {
  EXPECT_EQ(Streamed({"a", "\xC3"}, {"\uFFFD"}, /*is_byte_level=*/true,
                     /*prompt=*/{1}),
            "[a][]|!");
}

TEST(TextStreamTest, ATextThatFollowsAPromptKeepsItsFirstBlank) {
  EXPECT_EQ(Streamed({" a", " b"}, {}, /*is_byte_level=*/false), "[a][ b]|");
  EXPECT_EQ(Streamed({" a", " b"}, {}, /*is_byte_level=*/false, /*prompt=*/{0}),
            "[ a][ b]|");
  // No stop begins in the prompt.
  EXPECT_EQ(Streamed({" a", " c"}, {"c a"}, /*is_byte_level=*/false,
                     /*prompt=*/{1}),
            "[ a][ ]|c");
}

TEST(TextStreamTest, WithoutATokenizerThereIsNoText) {
  TextStream stream(nullptr, {7}, {});
  EXPECT_EQ(stream.Append(1).text, "");
  EXPECT_FALSE(stream.Append(2).stopped);
  EXPECT_EQ(stream.Finish().text, "");
}

// Random tokens over a small alphabet, so that stops, none of which is part of
// another, are met often.
TEST(TextStreamTest, StreamedTextIsTheDecodedTextUpToTheFirstStop) {
  const BpeTokenizer tokenizer =
      ByteLevel({"a", "b", "ab", "ba", "aab", "\xC3", "\xA9", "\xC3\xA9",
                 "\x80", "b\xC3"});
  const std::vector<std::string> stops = {"abab", "bbb", "éa", "aaaa", "béb"};
  std::mt19937 random(5);
  int num_stopped = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> chosen;
    for (const std::string& stop : stops) {
      if (random() % 2 == 0) chosen.push_back(stop);
    }
    TextStream stream(&tokenizer, /*prompt=*/{}, chosen);
    TokenSeq ids;
    std::string streamed;
    bool stopped = false;
    for (int n = 0; n < 24 && !stopped; ++n) {
      ids.push_back(static_cast<TokenId>(random() % tokenizer.vocab_size()));
      TextStream::Piece piece = stream.Append(ids.back());
      EXPECT_TRUE(IsValidUtf8(piece.text));
      streamed += piece.text;
      stopped = piece.stopped;
    }
    if (!stopped) {
      const TextStream::Piece last = stream.Finish();
      streamed += last.text;
      stopped = last.stopped;
    }
    const std::string decoded = tokenizer.Decode(ids);
    size_t expected = std::string::npos;
    for (const std::string& stop : chosen) {
      expected = std::min(expected, decoded.find(stop));
    }
    EXPECT_EQ(stopped, expected != std::string::npos);
    EXPECT_EQ(streamed, decoded.substr(0, expected));
    num_stopped += stopped;
  }
  EXPECT_GT(num_stopped, 300);
  EXPECT_LT(num_stopped, 2700);
}

}  // namespace
}  // namespace outrider
