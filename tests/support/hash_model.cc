// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hash_model.h"

#include <algorithm>

namespace outrider::testing {
namespace {

// SplitMix64's finaliser.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::vector<float> HashLogits(absl::Span<const TokenId> context, int vocab_size,
                              uint64_t salt) {
  uint64_t h = salt;
  const size_t first = context.size() > 3 ? context.size() - 3 : 0;
  for (const TokenId token : context.subspan(first)) h = Mix(h + token + 1);
  std::vector<float> logits(vocab_size);
  for (int v = 0; v < vocab_size; ++v) {
    // Uniform in [-4, 4).
    logits[v] = static_cast<float>(Mix(h + v) >> 40) * 0x1p-21f - 4.0f;
  }
  return logits;
}

}  // namespace

std::vector<float> HashTarget(absl::Span<const TokenId> context,
                              int vocab_size) {
  return HashLogits(context, vocab_size, /*salt=*/1);
}

std::vector<float> HashDraft(absl::Span<const TokenId> context,
                             int vocab_size) {
  std::vector<float> logits = HashTarget(context, vocab_size);
  const std::vector<float> noise = HashLogits(context, vocab_size, /*salt=*/2);
  for (int v = 0; v < vocab_size; ++v) logits[v] += 0.4f * noise[v];
  return logits;
}

TokenSeq PlainGreedy(TokenSeq prompt, int num_tokens, int vocab_size) {
  TokenSeq text = std::move(prompt);
  TokenSeq generated;
  for (int i = 0; i < num_tokens; ++i) {
    const std::vector<float> row = HashTarget(text, vocab_size);
    text.push_back(static_cast<TokenId>(
        std::max_element(row.begin(), row.end()) - row.begin()));
    generated.push_back(text.back());
  }
  return generated;
}

}  // namespace outrider::testing
