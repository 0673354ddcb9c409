// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_DRAFT_H_
#define OUTRIDER_CORE_SAMPLING_DRAFT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/sampling/distribution.h"

namespace outrider {

// K guesses for the positions start, start + 1, ..., and for each the
// distribution that it was really drawn from. K = 0 is plain decoding.
struct Draft {
  uint64_t start = 0;  // absolute position of tokens[0]
  std::vector<TokenId> tokens = {};
  std::vector<Distribution> distributions = {};  // as many as tokens
  // How sure the drafter was of each position (TopProbability), in (0, 1]: as
  // many as tokens where it was to end early, else none.
  std::vector<float> confidences = {};

  // No guess of what follows `length` tokens.
  static Draft None(int length) {
    return {.start = static_cast<uint64_t>(length)};
  }

  // Guesses that were not drawn: each is certain in its own row.
  static Draft OneHot(uint64_t start, absl::Span<const TokenId> tokens) {
    Draft draft = {.start = start, .tokens = {tokens.begin(), tokens.end()}};
    draft.distributions.reserve(tokens.size());
    for (const TokenId token : tokens) {
      draft.distributions.push_back(Distribution::OneHot(token));
    }
    return draft;
  }

  int length() const { return static_cast<int>(tokens.size()); }
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_DRAFT_H_
