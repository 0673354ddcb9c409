// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_MEASURE_DRAFT_H_
#define OUTRIDER_DRAFTER_MEASURE_DRAFT_H_

#include "absl/status/statusor.h"
#include "core/drafting/draft_strategy.h"

namespace outrider {

// The median time of one draft token, drawn greedily in drafts of four behind a
// context of 128 tokens; in seconds.
absl::StatusOr<double> MeasureDraftStep(DraftStrategy& strategy, int vocab_size,
                                        int context_length);

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_MEASURE_DRAFT_H_
