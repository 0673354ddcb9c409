// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/token_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/tokenizer/bpe_tokenizer.h"

namespace outrider {
namespace {

constexpr size_t kLongest = 16;

// Characters, with a token for each byte of those that have none.
TokenizerSpec WithBytes() {
  TokenizerSpec spec;
  spec.bpe.byte_fallback = true;
  for (int byte = 0; byte < 256; ++byte) {
    spec.bpe.tokens.emplace_back(absl::StrFormat("<0x%02X>", byte));
  }
  spec.bpe.tokens.emplace_back(std::string(kLongest, ' '));
  return spec;
}

TEST(MaxBytesPerTokenTest, IsTheLongestTokens) {
  EXPECT_EQ(MaxBytesPerToken(WithBytes()), kLongest);
  TokenizerSpec spec = WithBytes();
  spec.added_tokens.push_back({.id = 300, .content = std::string(40, 'a')});
  EXPECT_EQ(MaxBytesPerToken(spec), 40u);
}

TEST(MaxBytesPerTokenTest, NormalisingMayMakeTextShorter) {
  TokenizerSpec spec = WithBytes();
  spec.normalizer = {{.kind = NormalizerStep::Kind::kReplace,
                      .pattern = "aaaaa",
                      .content = "bb"}};
  EXPECT_EQ(MaxBytesPerToken(spec), 3 * kLongest);
  spec.normalizer = {{.kind = NormalizerStep::Kind::kNfc}};
  EXPECT_EQ(MaxBytesPerToken(spec), 4 * kLongest);
  spec.normalizer = {{.kind = NormalizerStep::Kind::kPrepend, .content = "a"}};
  EXPECT_EQ(MaxBytesPerToken(spec), kLongest);
  spec.normalizer.assign(32, {.kind = NormalizerStep::Kind::kNfc});
  EXPECT_EQ(MaxBytesPerToken(spec), std::nullopt);
  // The worst that form C does is within what is allowed for it.
  EXPECT_LE(std::string("\u1FBE\u0308\u0301").size(),
            4 * ToNfc("\u1FBE\u0308\u0301").size());
}

TEST(MaxBytesPerTokenTest, ThereIsNoneWhereTextIsLeftOut) {
  TokenizerSpec spec = WithBytes();
  spec.bpe.tokens[65].reset();  // one byte has no token
  EXPECT_EQ(MaxBytesPerToken(spec), std::nullopt);
  spec.bpe.unknown = 0;
  EXPECT_EQ(MaxBytesPerToken(spec), kLongest);
  spec.bpe.fuse_unknown = true;
  EXPECT_EQ(MaxBytesPerToken(spec), std::nullopt);

  spec = WithBytes();
  spec.normalizer = {
      {.kind = NormalizerStep::Kind::kReplace, .pattern = " ", .content = ""}};
  EXPECT_EQ(MaxBytesPerToken(spec), std::nullopt);

  spec = WithBytes();
  spec.added_tokens.push_back({.id = 300, .content = "a", .rstrip = true});
  EXPECT_EQ(MaxBytesPerToken(spec), std::nullopt);
}

TEST(MaxBytesPerTokenTest, NoTextHasFewerTokensThanItSays) {
  const BpeTokenizer tokenizer(WithBytes());
  ASSERT_EQ(tokenizer.max_bytes_per_token(), kLongest);
  for (const std::string& text :
       {std::string(1000, ' '), std::string(1000, '\xFF'),
        absl::StrCat(std::string(7, ' '), "\U0001F600\u00E9"), std::string()}) {
    EXPECT_GE(tokenizer.Encode(text).size() * kLongest, text.size());
  }
}

}  // namespace
}  // namespace outrider
