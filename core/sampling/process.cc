// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/cut_logits.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

absl::StatusOr<Distribution> Process(absl::Span<const float> logits,
                                     const SamplingParams& params,
                                     const TokenHistory& history) {
  OUTRIDER_RETURN_IF_ERROR(CheckLogits(logits));
  if (!AdjustsLogits(params)) {
    return IsGreedy(params) ? Distribution::OneHot(Argmax(logits))
                            : CutLogits(logits, params);
  }
  OUTRIDER_ASSIGN_OR_RETURN(const std::vector<double> adjusted,
                            AdjustLogits(logits, params, history));
  if (IsGreedy(params)) {
    const auto best = std::max_element(adjusted.begin(), adjusted.end());
    return Distribution::OneHot(static_cast<TokenId>(best - adjusted.begin()));
  }
  return CutLogits(absl::MakeConstSpan(adjusted), params);
}

absl::Status CheckLogits(absl::Span<const float> logits) {
  const RowCheck row = CheckRow(logits);
  if (!row.all_valid) {
    const auto bad = std::find_if(logits.begin(), logits.end(), [](float x) {
      return std::isnan(x) || x == kInfinity;
    });
    return absl::InternalError(absl::StrCat(
        "the model gave logit ", *bad, " for token ", bad - logits.begin()));
  }
  if (!row.any_possible) {
    return absl::InternalError("the model masked every token of a row");
  }
  return absl::OkStatus();
}

ArgmaxAndGap FindArgmax(absl::Span<const float> logits) {
  ArgmaxAndGap best;
  float second = -kInfinity;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best.argmax]) {
      second = logits[best.argmax];
      best.argmax = static_cast<int>(i);
    } else {
      second = std::max(second, logits[i]);
    }
  }
  best.gap = logits[best.argmax] - second;
  return best;
}

}  // namespace outrider
