// SPDX-License-Identifier: Apache-2.0
// A mebibyte of one character. What is quadratic anywhere takes minutes for it,
// and runs into this test's tight time limit.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/testing/golden_files.h"
#include "core/tokenizer/tokenizer_loader.h"

namespace outrider {
namespace {

using ::outrider::testing::SourcePath;

constexpr size_t kSize = 1 << 20;

struct Run {
  const char* directory = "";
  const char* unit = "";
  size_t num_tokens = 0;  // by the reference, without special tokens
};

// Counts of the reference package, tokenizers 0.23.3.
constexpr Run kRuns[] = {
    {"models/demo-target", "a", 131072},
    {"models/demo-target", "^", 524288},
    {"models/demo-target", " ", 32768},
    {"models/demo-target", "\n", 524288},
    {"models/demo-target", "é", 1048576},
    {"tests/golden/testdata/tokenizer/gpt2", "a", 1048576},
    {"tests/golden/testdata/tokenizer/qwen2", "a", 1048576},
    {"tests/golden/testdata/tokenizer/smollm2", "1", 1048576},
    {"tests/golden/testdata/tokenizer/llama2", "a", 1048576},
    {"tests/golden/testdata/tokenizer/llama2", "^", 1048577},
};

class TokenizerLongRunTest : public ::testing::TestWithParam<Run> {};

TEST_P(TokenizerLongRunTest, AMebibyteOfOneCharacterComesBackFromItsTokens) {
  SCOPED_TRACE(absl::StrCat(GetParam().directory, " '", GetParam().unit, "'"));
  const auto tokenizer = LoadTokenizer(SourcePath(GetParam().directory));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const size_t num_special = (*tokenizer)->Encode("").size();
  std::string text;
  while (text.size() < kSize) absl::StrAppend(&text, GetParam().unit);
  const auto begin = std::chrono::steady_clock::now();
  const TokenSeq ids = (*tokenizer)->Encode(text);
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  // This is for the reader of the log, and asserts nothing.
  std::cout << ids.size() << " tokens in " << seconds.count() << " s\n";
  EXPECT_EQ(ids.size(), GetParam().num_tokens + num_special);
  EXPECT_TRUE((*tokenizer)->Decode(ids) == text);
}

INSTANTIATE_TEST_SUITE_P(Runs, TokenizerLongRunTest,
                         ::testing::ValuesIn(kRuns));

}  // namespace
}  // namespace outrider
