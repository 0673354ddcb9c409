// SPDX-License-Identifier: Apache-2.0
// Damaged and hostile tokenizer.json files: every one gives a status, and what
// still loads can be used.
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/testing/golden_files.h"
#include "core/tokenizer/bpe_tokenizer.h"
#include "core/tokenizer/tokenizer_json.h"
#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

using ::outrider::testing::FileContent;
using ::outrider::testing::GoldenDirectory;
using ::outrider::testing::GoldenKinds;

constexpr char kText[] = "Hello  <s>wörld\n😀 123 it's\xFF <|a|>";

std::string Fixture(const std::string& kind) {
  return FileContent(absl::StrCat(GoldenDirectory(kind), "/tokenizer.json"));
}

// Loads `file` and, where it loads, uses the tokenizer. Returns the code.
absl::StatusCode Try(const std::string& file) {
  const auto spec = ParseTokenizerJson(file);
  if (!spec.ok()) {
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status()) ||
                absl::IsUnimplemented(spec.status()))
        << spec.status();
    EXPECT_FALSE(spec.status().message().empty());
    return spec.status().code();
  }
  const BpeTokenizer tokenizer(*spec);
  const std::vector<TokenId> ids = tokenizer.Encode(kText);
  for (const TokenId id : ids) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, tokenizer.vocab_size());
  }
  EXPECT_TRUE(IsValidUtf8(tokenizer.Decode(ids)));
  EXPECT_TRUE(IsValidUtf8(tokenizer.Decode({-1, 0, 1, 2, 1 << 30})));
  return absl::StatusCode::kOk;
}

TEST(TokenizerHostileTest, EveryTruncationIsRefused) {
  for (const std::string& kind : GoldenKinds()) {
    const std::string file = Fixture(kind);
    const size_t content = file.find_last_of('}');
    for (size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(Try(file.substr(0, content * i / 40)),
                absl::StatusCode::kInvalidArgument)
          << kind << " " << i;
    }
    EXPECT_EQ(Try(file.substr(0, content)), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Try(file), absl::StatusCode::kOk);
  }
}

TEST(TokenizerHostileTest, ChangedBytesNeverCrash) {
  std::mt19937 random(7);
  for (const std::string& kind : GoldenKinds()) {
    const std::string file = Fixture(kind);
    for (int i = 0; i < 60; ++i) {
      std::string changed = file;
      for (uint32_t n = random() % 4; n < 4; ++n) {
        changed[random() % changed.size()] = static_cast<char>(
            random() % 2 ? random() : "0{}[]\",:9-en"[random() % 12]);
      }
      Try(changed);
    }
  }
}

// Changes that keep the file valid JSON and so reach the checks after that.
TEST(TokenizerHostileTest, ExchangedWordsNeverCrash) {
  const std::vector<std::string> words = {"null",
                                          "true",
                                          "false",
                                          "0",
                                          "-1",
                                          "4194304",
                                          "1e300",
                                          "\"\"",
                                          "\"a\"",
                                          "[]",
                                          "{}",
                                          "12",
                                          "1.5",
                                          "[[1],{}]",
                                          "99",
                                          "\"\\u0000\"",
                                          "{\"type\":\"NFC\"}",
                                          "18446744073709551616"};
  std::mt19937 random(11);
  for (const std::string& kind : GoldenKinds()) {
    const std::string file = Fixture(kind);
    for (int i = 0; i < 120; ++i) {
      // What follows a random colon, every other time one off the vocabulary.
      size_t from = random() % file.size();
      if (random() % 2) from %= 1500;
      const size_t begin = file.find(':', from);
      if (begin == std::string::npos) continue;
      const size_t end = file.find_first_of(",}", begin);
      Try(absl::StrCat(file.substr(0, begin + 1),
                       words[random() % words.size()], file.substr(end)));
    }
  }
}

TEST(TokenizerHostileTest, RemovedAndDoubledStretchesNeverCrash) {
  std::mt19937 random(13);
  for (const std::string& kind : GoldenKinds()) {
    const std::string file = Fixture(kind);
    for (int i = 0; i < 60; ++i) {
      const size_t begin = random() % file.size();
      const size_t length = random() % (random() % 2 ? 40 : 4000);
      Try(absl::StrCat(file.substr(0, begin),
                       file.substr(std::min(begin + length, file.size()))));
      Try(absl::StrCat(file.substr(0, begin), file.substr(begin, length),
                       file.substr(begin)));
    }
  }
}

TEST(TokenizerHostileTest, DeepNestingIsRefusedWithoutRecursion) {
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string file;
    for (int i = 0; i < 1'000'000; ++i) file += bracket;
    EXPECT_EQ(Try(file), absl::StatusCode::kInvalidArgument);
  }
  std::string closed(65, '[');
  closed += std::string(65, ']');
  EXPECT_EQ(Try(closed), absl::StatusCode::kInvalidArgument);
}

TEST(TokenizerHostileTest, MillionsOfValuesAreRefusedWithoutBeingKept) {
  std::string file = "[0";
  for (int i = 0; i < 4'100'000; ++i) file += ",0";
  EXPECT_EQ(Try(file + "]"), absl::StatusCode::kInvalidArgument);
}

TEST(TokenizerHostileTest, LongTextsOfOneCharacterAreEncodedInTime) {
  for (const char* kind : {"gpt2-added", "llama3", "qwen2", "llama2",
                           "metaspace-always", "smollm2"}) {
    const auto spec = ParseTokenizerJson(Fixture(kind));
    ASSERT_TRUE(spec.ok()) << spec.status();
    const BpeTokenizer tokenizer(*spec);
    // No timing assertion: the test's time limit is far above n log n.
    for (const absl::string_view unit :
         {"a", "^", " ", "\n", "😀", "\u0301", "\u0323\u0301", "\u0F73", "<s",
          "1", " 1"}) {
      std::string text;
      while (text.size() < (1 << 17)) absl::StrAppend(&text, unit);
      EXPECT_FALSE(tokenizer.Encode(text).empty());
    }
  }
}

}  // namespace
}  // namespace outrider
