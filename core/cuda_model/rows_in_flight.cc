// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/rows_in_flight.h"

#include <cstdint>
#include <utility>

#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace outrider {

absl::StatusOr<std::unique_ptr<RowsInFlight>> RowsInFlight::Make(
    std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
    const Options& options) {
  const size_t bytes = static_cast<size_t>(options.max_rows) *
                       static_cast<size_t>(options.vocab_size) * sizeof(float);
  OUTRIDER_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::AllocateZeroed(gpu, bytes, "rows in flight"));
  counters.num_memory_bytes += static_cast<int64_t>(bytes);
  OUTRIDER_ASSIGN_OR_RETURN(DeviceEvent copied, DeviceEvent::Make(gpu));
  return std::unique_ptr<RowsInFlight>(new RowsInFlight(
      std::move(gpu), options, std::move(memory), std::move(copied)));
}

absl::Status RowsInFlight::MakeRoom() {
  MutexLock lock(mu_);
  if (last_ == nullptr) return absl::OkStatus();
  OUTRIDER_CHECK(aside_ == nullptr) << "a third step is in flight";
  aside_ = std::exchange(last_, nullptr);
  gpu_->Copy(
      memory_.data(), options_.logits,
      num_rows_ * static_cast<size_t>(options_.vocab_size) * sizeof(float));
  return copied_.Record();
}

void RowsInFlight::Keep(const StepInFlight& step, size_t num_rows) {
  MutexLock lock(mu_);
  last_ = num_rows == 0 ? nullptr : &step;
  num_rows_ = num_rows;
}

absl::Status RowsInFlight::Read(
    const StepInFlight& step,
    absl::FunctionRef<absl::Status(const float* logits)> fetch) {
  // Until it is over, no step is launched that would write there.
  MutexLock lock(mu_);
  if (&step == last_) return fetch(options_.logits);
  OUTRIDER_CHECK(&step == aside_) << "nobody has kept these rows";
  OUTRIDER_RETURN_IF_ERROR(copied_.Await());
  return fetch(memory_.as<const float>());
}

void RowsInFlight::Forget(const StepInFlight& step) {
  MutexLock lock(mu_);
  if (&step == last_) last_ = nullptr;
  if (&step == aside_) aside_ = nullptr;
}

}  // namespace outrider
