// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/lenience.h"

#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/adjust_logits.h"

namespace outrider {

absl::StatusOr<Distribution> JudgingRow(Distribution row, TokenId draft,
                                        absl::Span<const float> logits,
                                        const SamplingParams& params,
                                        const TokenHistory& history) {
  if (!IsLossy(params) || !IsGreedy(params)) return row;
  if (draft < 0 || static_cast<size_t>(draft) >= logits.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "draft ", draft, " is not in a row of ", logits.size(), " logits"));
  }
  const TokenId argmax = row.support()[0];
  // ln(p(draft) / max p): the normaliser cancels.
  double log_ratio = double{logits[draft]} - double{logits[argmax]};
  if (AdjustsLogits(params)) {
    OUTRIDER_ASSIGN_OR_RETURN(const std::vector<double> adjusted,
                              AdjustLogits(logits, params, history));
    log_ratio = adjusted[draft] - adjusted[argmax];
  }
  if (std::exp(log_ratio) < params.lossy_lenience) return row;
  return Distribution::OneHot(draft);
}

}  // namespace outrider
