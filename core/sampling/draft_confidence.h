// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_DRAFT_CONFIDENCE_H_
#define OUTRIDER_CORE_SAMPLING_DRAFT_CONFIDENCE_H_

#include "absl/types/span.h"

namespace outrider {

// How sure a drafter is of a position: the probability of its first choice,
// from the logits as they are (temperature 1). It says when to stop drafting
// and must not depend on the token drawn there, or the output's law changes.
// `logits` holds no NaN, and at least one that is finite.
double TopProbability(absl::Span<const float> logits);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_DRAFT_CONFIDENCE_H_
