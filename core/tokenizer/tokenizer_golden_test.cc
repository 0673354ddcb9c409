// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
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
  for (const char* list : {"encode", "decode"}) {
    for (const json& test_case : cases_[list]) {
      EXPECT_EQ(
          tokenizer_->Decode(test_case["ids"].get<std::vector<TokenId>>()),
          test_case["decoded"].get<std::string>())
          << test_case.dump().substr(0, 300);
    }
  }
}

TEST_P(TokenizerGoldenTest, StreamsOnlyWholeCharacters) {
  for (const char* list : {"encode", "decode"}) {
    for (const json& test_case : cases_[list]) {
      const auto decoder = tokenizer_->NewDecoder();
      std::string text;
      for (const TokenId id : test_case["ids"].get<std::vector<TokenId>>()) {
        const std::string piece = decoder->Append(id);
        EXPECT_TRUE(IsValidUtf8(piece)) << absl::CHexEscape(piece);
        text += piece;
      }
      const std::string rest = decoder->Finish();
      EXPECT_TRUE(IsValidUtf8(rest)) << absl::CHexEscape(rest);
      EXPECT_EQ(text + rest, test_case["decoded"].get<std::string>());
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
