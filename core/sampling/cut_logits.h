// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_CUT_LOGITS_H_
#define OUTRIDER_CORE_SAMPLING_CUT_LOGITS_H_

#include "absl/types/span.h"
#include "core/sampling/distribution.h"
#include "core/sampling/sampling_params.h"

namespace outrider {

// The part of Process from the temperature on, over places in `logits`: these
// are checked, and adjusted where that is asked for. The temperature is above
// kGreedyTemperature.
Distribution CutLogits(absl::Span<const float> logits,
                       const SamplingParams& params);
Distribution CutLogits(absl::Span<const double> logits,
                       const SamplingParams& params);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_CUT_LOGITS_H_
