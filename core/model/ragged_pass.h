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

// CausalLm::Extend for a model that computes the logits of a whole pass into
// one piece of memory. `check` says which extensions can run; `run` runs those,
// and returns [NumLogitRows, vocab_size] in their order, or null where that is
// none. What it fails with is everybody's result.
std::vector<absl::StatusOr<LogitRows>> ExtendAsOnePass(
    absl::Span<const Extension> batch, int vocab_size,
    absl::FunctionRef<absl::Status(const Extension&)> check,
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<const float>>(
        absl::Span<const Extension>)>
        run);

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_RAGGED_PASS_H_
