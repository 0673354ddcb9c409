// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_RAGGED_PASS_H_
#define OUTRIDER_CORE_MODEL_RAGGED_PASS_H_

#include <cstddef>
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

// The extensions of a batch that a model can run, as `check` says, and what
// comes of the batch. Names the batch's spans.
class CheckedPass {
 public:
  CheckedPass(absl::Span<const Extension> batch,
              absl::FunctionRef<absl::Status(const Extension&)> check);

  // Those that can run, in their order.
  absl::Span<const Extension> extensions() const { return extensions_; }
  // Takes the rows of each of those, or what all of them failed with. Called
  // once.
  PassResults Results(absl::StatusOr<std::vector<LogitRows>> rows);

 private:
  std::vector<Extension> extensions_;
  std::vector<size_t> members_;  // of the batch, in the order of extensions_
  PassResults results_;          // of the batch
};

// The rows of each where they are in one piece of memory: [NumLogitRows,
// vocab_size] in the order of the pass, or null where that is none.
std::vector<LogitRows> RowsOfEach(absl::Span<const Extension> pass,
                                  int vocab_size,
                                  const std::shared_ptr<const float>& logits);

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_RAGGED_PASS_H_
