// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "core/testing/golden_files.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

using nlohmann::json;
using ::outrider::testing::FileContent;
using ::outrider::testing::GoldenDirectory;
using ::outrider::testing::GoldenKinds;
using ::outrider::testing::SourcePath;

struct Golden {
  std::string kind;
  std::string model_directory;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.kind; }

std::vector<Golden> AllGolden() {
  std::vector<Golden> all;
  for (const std::string& kind : GoldenKinds()) {
    all.push_back({kind, ""});
  }
  all.push_back({"demo-target", "models/demo-target"});
  return all;
}

std::string TextOf(const json& test_case) {
  if (test_case.contains("hex")) {
    return absl::HexStringToBytes(test_case["hex"].get<std::string>());
  }
  std::string text;
  for (int i = test_case.value("repeat", 1); i > 0; --i) {
    text += test_case["text"].get<std::string>();
  }
  return text;
}

// Whether `text` is `reference`, but for characters of byte tokens that were
// told before a later byte of their run was invalid: the reference has a U+FFFD
// for each of their bytes (StreamingDecoder).
bool IsSameButForWhatWasTold(absl::string_view text,
                             absl::string_view reference) {
  while (!text.empty()) {
    size_t size = 0;
    NextCodePoint(text, &size);
    const absl::string_view character = text.substr(0, size);
    text.remove_prefix(size);
    if (absl::ConsumePrefix(&reference, character)) continue;
    for (size_t i = 0; i < size; ++i) {
      if (!absl::ConsumePrefix(&reference, kReplacementCharacter)) return false;
    }
  }
  return reference.empty();
}

// The first piece from this one on that has a text.
std::string NextText(const std::vector<std::string>& pieces, size_t begin) {
  while (begin + 1 < pieces.size() && pieces[begin].empty()) ++begin;
  return pieces[begin];
}

class TokenizerGoldenTest : public ::testing::TestWithParam<Golden> {
 protected:
  void SetUp() override {
    const std::string directory = GoldenDirectory(GetParam().kind);
    auto tokenizer =
        LoadTokenizer(GetParam().model_directory.empty()
                          ? directory
                          : SourcePath(GetParam().model_directory));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
    cases_ = json::parse(FileContent(directory + "/cases.json"));
    ASSERT_GT(cases_["encode"].size(), 100u);
    ASSERT_GT(cases_["decode"].size(), 50u);
  }

  std::string Streamed(absl::Span<const TokenId> before,
                       absl::Span<const TokenId> ids) const {
    const auto decoder = tokenizer_->NewDecoder(before);
    std::string text;
    for (const TokenId id : ids) text += decoder->Append(id);
    return text + decoder->Finish();
  }

  // Each token has one, and so has the end.
  std::vector<std::string> PiecesOf(absl::Span<const TokenId> ids) const {
    const auto decoder = tokenizer_->NewDecoder({});
    std::vector<std::string> pieces;
    for (const TokenId id : ids) pieces.push_back(decoder->Append(id));
    pieces.push_back(decoder->Finish());
    return pieces;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  json cases_;
};

TEST_P(TokenizerGoldenTest, EncodesLikeTheReference) {
  for (const json& test_case : cases_["encode"]) {
    EXPECT_EQ(tokenizer_->Encode(TextOf(test_case)),
              test_case["ids"].get<std::vector<TokenId>>())
        << test_case.dump().substr(0, 300);
  }
}

TEST_P(TokenizerGoldenTest, DecodesLikeTheReference) {
  int num_exact = 0;
  for (const char* list : {"encode", "decode"}) {
    for (const json& test_case : cases_[list]) {
      const std::string text =
          tokenizer_->Decode(test_case["ids"].get<std::vector<TokenId>>());
      const std::string reference = test_case["decoded"];
      EXPECT_TRUE(IsSameButForWhatWasTold(text, reference))
          << text << "\n"
          << test_case.dump().substr(0, 300);
      num_exact += text == reference;
    }
  }
  EXPECT_GE(num_exact, 150);
}

// A prompt's text and its continuation's are together the text of both. Where
// the prompt ends within a character, its text has a U+FFFD for that, which is
// none of the whole text's if the continuation completes the character.
TEST_P(TokenizerGoldenTest, ATextGoesOnWhereverItsTokensAreCut) {
  for (const char* list : {"encode", "decode"}) {
    for (const json& test_case : cases_[list]) {
      const auto ids = test_case["ids"].get<std::vector<TokenId>>();
      const std::string whole = tokenizer_->Decode(ids);
      const std::vector<std::string> pieces = PiecesOf(ids);
      const auto all = absl::MakeConstSpan(ids);
      const size_t num_cuts = std::min<size_t>(ids.size(), 60);
      std::string certain;
      for (size_t cut = 0; cut <= num_cuts; ++cut) {
        const std::string prompt = tokenizer_->Decode(all.first(cut));
        const bool is_completed = !absl::StartsWith(
            NextText(pieces, cut), absl::StripPrefix(prompt, certain));
        EXPECT_EQ((is_completed ? certain : prompt) +
                      Streamed(all.first(cut), all.subspan(cut)),
                  whole)
            << cut << " " << test_case.dump().substr(0, 300);
        certain += pieces[cut];
      }
    }
  }
}

// This is what completions of SentencePiece's models lost.
TEST_P(TokenizerGoldenTest, AWordAfterAPromptKeepsItsBlank) {
  const std::vector<TokenId> prompt = tokenizer_->Encode("the a");
  const std::vector<TokenId> ids = tokenizer_->Encode("the a the a");
  // Some add an end.
  size_t num_same = 0;
  while (num_same < prompt.size() && prompt[num_same] == ids[num_same]) {
    ++num_same;
  }
  const auto all = absl::MakeConstSpan(ids);
  const std::string before = tokenizer_->Decode(all.first(num_same));
  EXPECT_EQ(before + Streamed(all.first(num_same), all.subspan(num_same)),
            tokenizer_->Decode(ids));
  EXPECT_EQ(Streamed(all.first(num_same), all.subspan(num_same)), " the a");
}

TEST_P(TokenizerGoldenTest, StreamsOnlyWholeCharacters) {
  for (const char* list : {"encode", "decode"}) {
    for (const json& test_case : cases_[list]) {
      const auto decoder = tokenizer_->NewDecoder({});
      std::string text;
      for (const TokenId id : test_case["ids"].get<std::vector<TokenId>>()) {
        const std::string piece = decoder->Append(id);
        EXPECT_TRUE(IsValidUtf8(piece)) << absl::CHexEscape(piece);
        text += piece;
      }
      const std::string rest = decoder->Finish();
      EXPECT_TRUE(IsValidUtf8(rest)) << absl::CHexEscape(rest);
      EXPECT_TRUE(IsSameButForWhatWasTold(
          text + rest, test_case["decoded"].get<std::string>()));
    }
  }
}

TEST_P(TokenizerGoldenTest, AnyBytesAreEncodedToIdsOfTheVocabulary) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    for (const TokenId id : tokenizer_->Encode(bytes)) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, tokenizer_->vocab_size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGoldenTest,
                         ::testing::ValuesIn(AllGolden()));

TEST(TokenizerGoldenFingerprintTest, EveryKindHasItsOwn) {
  std::vector<std::string> seen;
  for (const std::string& kind : GoldenKinds()) {
    const auto tokenizer = LoadTokenizer(GoldenDirectory(kind));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    for (const std::string& other : seen) {
      EXPECT_NE((*tokenizer)->fingerprint(), other) << kind;
    }
    seen.push_back((*tokenizer)->fingerprint());
  }
}

TEST(TokenizerGoldenFingerprintTest, TheDemoPairSharesOneTokenizer) {
  const auto target = LoadTokenizer(SourcePath("models/demo-target"));
  const auto draft = LoadTokenizer(SourcePath("models/demo-draft"));
  ASSERT_TRUE(target.ok()) << target.status();
  ASSERT_TRUE(draft.ok()) << draft.status();
  EXPECT_EQ((*target)->fingerprint(), (*draft)->fingerprint());
  EXPECT_EQ((*target)->fingerprint().size(), 64u);
}

}  // namespace
}  // namespace outrider
