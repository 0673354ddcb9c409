// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_MEASURE_DRAFT_H_
#define OUTRIDER_DRAFTER_MEASURE_DRAFT_H_

#include "absl/status/statusor.h"
#include "core/drafting/draft_strategy.h"
#include "core/node/load_model.h"

namespace outrider {

// The median time of one draft token in drafts of four after a context of 128
// tokens, cut as a generation's are (kGenerationDraftOptions); in seconds.
struct DraftStepTimes {
  double greedy = 0;
  double sampled = 0;  // at temperature 1
};

// Sets up the model's KV blocks. INVALID_ARGUMENT where its context is too
// short.
absl::StatusOr<DraftStepTimes> MeasureDraftStep(const DraftStrategy& strategy,
                                                CausalLm& model,
                                                int vocab_size);

// A drafter's --measure: measures and prints, as the flags say.
absl::Status PrintDraftMeasurement(const NodeFlags& flags, LoadedModel& loaded);

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_MEASURE_DRAFT_H_
