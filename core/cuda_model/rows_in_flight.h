// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_ROWS_IN_FLIGHT_H_
#define OUTRIDER_CORE_CUDA_MODEL_ROWS_IN_FLIGHT_H_

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/cuda_model/device_event.h"
#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/step_in_flight.h"
#include "core/model/device_counters.h"

namespace outrider {

// Where the logits of steps in flight lie on the device, for whoever wants a
// row whose answer does not decide. All steps leave their rows in one place: so
// before the next one is launched, those that may still be wanted are copied
// aside, in the stream's order. Thread-safe: one thread launches a step while
// another one brings the one before it.
class RowsInFlight {
 public:
  struct Options {
    const float* logits = nullptr;  // [max_rows, vocab_size]: where steps do
    int max_rows = 0;
    int vocab_size = 0;
  };

  // RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<RowsInFlight>> Make(
      std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
      const Options& options);

  // Comes before a step is launched. UNAVAILABLE: the device is lost.
  absl::Status MakeRoom();
  // The step was launched: its first rows, so many, may be wanted from here on.
  void Keep(const StepInFlight& step, size_t num_rows);
  // They are read by `fetch`, which awaits what it fetches. Comes once the
  // device has left them there, and before Forget.
  absl::Status Read(const StepInFlight& step,
                    absl::FunctionRef<absl::Status(const float* logits)> fetch);
  // None of them is wanted any more.
  void Forget(const StepInFlight& step);

 private:
  RowsInFlight(std::shared_ptr<Gpu> gpu, const Options& options,
               DeviceMemory memory, DeviceEvent copied)
      : gpu_(std::move(gpu)),
        options_(options),
        memory_(std::move(memory)),
        copied_(std::move(copied)) {}

  const std::shared_ptr<Gpu> gpu_;
  const Options options_;
  const DeviceMemory memory_;  // as large as where steps leave theirs

  Mutex mu_;
  DeviceEvent copied_ ABSL_GUARDED_BY(mu_);  // after the last copies aside
  // Whose rows are where they were left, and aside; null: nobody wants any.
  const StepInFlight* last_ ABSL_GUARDED_BY(mu_) = nullptr;
  const StepInFlight* aside_ ABSL_GUARDED_BY(mu_) = nullptr;
  size_t num_rows_ ABSL_GUARDED_BY(mu_) = 0;  // of last_
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_ROWS_IN_FLIGHT_H_
