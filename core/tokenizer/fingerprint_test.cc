// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace outrider {
namespace {

TokenizerSpec Fingerprinted() {
  TokenizerSpec spec;
  spec.bpe.tokens = {"a", "b", "ab", std::nullopt, "ba"};
  spec.bpe.merges = {{0, 1, 2}, {1, 0, 4}};
  spec.added_tokens = {{.id = 5, .content = "<s>", .special = true},
                       {.id = 6, .content = "<t>"}};
  spec.normalizer = {{.kind = NormalizerStep::Kind::kNfc}};
  spec.prefix = {5};
  return spec;
}

TEST(FingerprintTest, EveryFieldCounts) {
  const std::vector<std::function<void(TokenizerSpec*)>> changes = {
      [](TokenizerSpec*) {},
      [](TokenizerSpec* s) { s->bpe.tokens[0] = std::string("c"); },
      [](TokenizerSpec* s) { s->bpe.tokens[3] = std::string(""); },
      [](TokenizerSpec* s) { std::swap(s->bpe.tokens[0], s->bpe.tokens[1]); },
      [](TokenizerSpec* s) { std::swap(s->bpe.merges[0], s->bpe.merges[1]); },
      [](TokenizerSpec* s) { s->bpe.merges.pop_back(); },
      [](TokenizerSpec* s) { s->bpe.unknown = 0; },
      [](TokenizerSpec* s) { s->bpe.fuse_unknown = true; },
      [](TokenizerSpec* s) { s->bpe.byte_fallback = true; },
      [](TokenizerSpec* s) { s->bpe.ignore_merges = true; },
      [](TokenizerSpec* s) { s->added_tokens[1].special = true; },
      [](TokenizerSpec* s) { s->added_tokens[1].lstrip = true; },
      [](TokenizerSpec* s) { s->added_tokens[1].rstrip = true; },
      [](TokenizerSpec* s) { s->added_tokens[1].single_word = true; },
      [](TokenizerSpec* s) { s->added_tokens[1].normalized = true; },
      [](TokenizerSpec* s) { s->added_tokens[1].content = std::string("<u>"); },
      [](TokenizerSpec* s) { s->normalizer.clear(); },
      [](TokenizerSpec* s) { s->normalizer[0].content = std::string("x"); },
      [](TokenizerSpec* s) { s->pretokenizer.pattern = SplitPattern::kGpt2; },
      [](TokenizerSpec* s) { s->pretokenizer.prepend = Prepend::kFirst; },
      [](TokenizerSpec* s) { s->pretokenizer.cut_at_replacement = true; },
      [](TokenizerSpec* s) { s->pretokenizer.replacement = std::string("_"); },
      [](TokenizerSpec* s) { s->pretokenizer.digits = Digits::kRunsAlone; },
      [](TokenizerSpec* s) { s->pretokenizer.digits = Digits::kEachAlone; },
      [](TokenizerSpec* s) { s->prefix.clear(); },
      [](TokenizerSpec* s) { std::swap(s->prefix, s->suffix); },
      [](TokenizerSpec* s) { s->decoder.kind = DecoderSpec::Kind::kPieces; },
      [](TokenizerSpec* s) { s->decoder.max_stripped = 1; },
      [](TokenizerSpec* s) { s->decoder.byte_fallback = true; },
  };
  std::set<std::string> seen;
  for (const auto& change : changes) {
    TokenizerSpec spec = Fingerprinted();
    change(&spec);
    EXPECT_TRUE(seen.insert(FingerprintOf(spec)).second) << seen.size();
  }
}

TEST(FingerprintTest, TheOrderOfAddedTokensInTheFileDoesNot) {
  TokenizerSpec spec = Fingerprinted();
  std::swap(spec.added_tokens[0], spec.added_tokens[1]);
  EXPECT_EQ(FingerprintOf(spec), FingerprintOf(Fingerprinted()));
}

// Nodes of different releases compare fingerprints: whoever changes this value
// also raises the number in the hash.
TEST(FingerprintTest, IsStableBetweenReleases) {
  EXPECT_EQ(FingerprintOf(Fingerprinted()),
            "d48ba72ad286bed3c82e842cbfffcfe1878c54639d6e2b1631660fd07f9a8447");
}

}  // namespace
}  // namespace outrider
