// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/draft_confidence.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/sampling/vector_math.h"

namespace outrider {

double TopProbability(absl::Span<const float> logits) {
  const double maximum = logits[Argmax(logits)];
  double total = 0;
  std::array<double, 512> block;  // no need for a whole row of doubles
  for (size_t begin = 0; begin < logits.size(); begin += block.size()) {
    const auto part = logits.subspan(begin, block.size());
    std::transform(part.begin(), part.end(), block.begin(),
                   [maximum](float logit) { return logit - maximum; });
    const auto terms = absl::MakeSpan(block).first(part.size());
    ExpInPlace(terms);
    for (const double term : terms) total += term;
  }
  return 1 / total;
}

}  // namespace outrider
