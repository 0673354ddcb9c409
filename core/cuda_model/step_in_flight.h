// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_STEP_IN_FLIGHT_H_
#define OUTRIDER_CORE_CUDA_MODEL_STEP_IN_FLIGHT_H_

#include <memory>

#include "absl/status/status.h"
#include "core/cuda_model/device_event.h"
#include "core/cuda_model/draw_loop.h"
#include "core/cuda_model/row_scorer.h"

namespace outrider {

// How many steps may have been launched and not been brought. What the host
// writes for one of them and reads of it is there so often; what is on the
// device is there once, as the stream runs one step after the other.
inline constexpr int kStepsInFlight = 2;

// What one of them has of its own.
struct StepInFlight {
  std::shared_ptr<void> inputs = {};  // pinned, of a StepInputs
  std::unique_ptr<RowScorer> scorer = {};
  std::unique_ptr<DrawLoop> loop = {};
  DeviceEvent end;  // after its downloads
  // What came of its launch. Something may be on its way all the same.
  absl::Status launched = absl::OkStatus();
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_STEP_IN_FLIGHT_H_
