// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_CUDA_PASS_H_
#define OUTRIDER_CORE_CUDA_MODEL_CUDA_PASS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cuda_model/cuda_transformer.h"
#include "core/cuda_model/step_in_flight.h"
#include "core/cuda_model/step_inputs.h"
#include "core/cuda_model/wanted_row.h"
#include "core/model/pending_pass.h"
#include "core/model/ragged_pass.h"

namespace outrider {

// A pass on a GPU, in steps, each as full as can be; no bit depends on where
// one ends. All but the last are awaited as they are launched: passes of so
// many tokens are long, and seldom.
class CudaPass final : public PendingPass {
 public:
  // Launches it. `flight` is its own until Finish.
  CudaPass(CheckedPass pass, CudaTransformer& transformer,
           StepInFlight& flight);

  PassResults Finish() override;

 private:
  absl::Status Launch();
  void LaunchStep(StepInputs& step);
  absl::Status Bring();
  // What came of the wanted rows, for each extension.
  std::vector<LogitRows> TakeRows();

  CheckedPass pass_;
  CudaTransformer& transformer_;
  StepInFlight& flight_;
  std::vector<WantedRow> rows_;  // of all its steps
  absl::Span<WantedRow> left_;   // of the steps that are to be launched
  absl::Span<WantedRow> last_;   // of the step launched last
  absl::Status launched_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_CUDA_PASS_H_
