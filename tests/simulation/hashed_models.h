// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_HASHED_MODELS_H_
#define OUTRIDER_TESTS_SIMULATION_HASHED_MODELS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/testing/table_lm.h"
#include "tests/simulation/fault.h"

namespace outrider::testing {

inline constexpr int kHashedVocabulary = 6;

// Logits that depend on every token of the context, so that a wrong one shows,
// wherever it is.
inline std::vector<float> HashedLogits(absl::Span<const TokenId> context,
                                       uint64_t salt) {
  uint64_t h = salt;
  for (const TokenId token : context) {
    h = HashOf(h, static_cast<uint64_t>(token + 2));
  }
  std::vector<float> logits(kHashedVocabulary);
  for (int v = 0; v < kHashedVocabulary; ++v) {
    // Uniform in [-2, 2).
    logits[v] = static_cast<float>(HashOf(h, v) >> 40) * 0x1p-22f - 2.0f;
  }
  return logits;
}

inline std::vector<float> HashedTarget(absl::Span<const TokenId> context) {
  return HashedLogits(context, /*salt=*/1);
}
// Another model for the same texts.
inline std::vector<float> OtherTarget(absl::Span<const TokenId> context) {
  return HashedLogits(context, /*salt=*/3);
}
// Agrees with the target more often than not.
inline std::vector<float> HashedDraft(absl::Span<const TokenId> context) {
  std::vector<float> logits = HashedTarget(context);
  const std::vector<float> own = HashedLogits(context, /*salt=*/2);
  for (int v = 0; v < kHashedVocabulary; ++v) logits[v] += 0.3f * own[v];
  return logits;
}

// A model of this table, whose numbers are none while `is_broken`.
inline TableLm::Options HashedModel(
    std::vector<float> (*table)(absl::Span<const TokenId>),
    const bool& is_broken) {
  return {.table =
              [table, &is_broken](absl::Span<const TokenId> context) {
                std::vector<float> logits = table(context);
                if (is_broken) {
                  logits[0] = std::numeric_limits<float>::quiet_NaN();
                }
                return logits;
              },
          .vocab_size = kHashedVocabulary,
          .context_length = 256};
}

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_HASHED_MODELS_H_
