// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_RAGGED_PASS_H_
#define OUTRIDER_CORE_MODEL_RAGGED_PASS_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/causal_lm.h"

namespace outrider {

// The sum of num_rows over a pass.
int NumLogitRows(absl::Span<const Extension> pass);

// CausalLm::Extend for a model that runs a whole pass at once. `check` says
// which extensions can run; `run` runs those, and returns the rows of each.
// What it fails with is everybody's result.
std::vector<absl::StatusOr<LogitRows>> ExtendAsOnePass(
    absl::Span<const Extension> batch,
    absl::FunctionRef<absl::Status(const Extension&)> check,
    absl::FunctionRef<
        absl::StatusOr<std::vector<LogitRows>>(absl::Span<const Extension>)>
        run);

// The rows of each where they are in one piece of memory: [NumLogitRows,
// vocab_size] in the order of the pass, or null where that is none.
std::vector<LogitRows> RowsOfEach(absl::Span<const Extension> pass,
                                  int vocab_size,
                                  const std::shared_ptr<const float>& logits);

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_RAGGED_PASS_H_
