// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_DEVICE_EVENT_H_
#define OUTRIDER_CORE_CUDA_MODEL_DEVICE_EVENT_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/kernels/cuda/gpu.h"

namespace outrider {

// UNAVAILABLE, where there is a failure: the device is lost.
inline absl::Status StatusOfDevice(absl::string_view failure) {
  if (failure.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("forward pass: ", failure));
}

// A place in what a GPU was asked for, given back when it goes.
class DeviceEvent {
 public:
  // RESOURCE_EXHAUSTED: the device makes none.
  static absl::StatusOr<DeviceEvent> Make(
      std::shared_ptr<kernels::cuda::Gpu> gpu) {
    const kernels::cuda::Event event = gpu->MakeEvent();
    if (event != nullptr) return DeviceEvent(event, {std::move(gpu)});
    return absl::ResourceExhaustedError("the GPU makes no event");
  }

  // It comes after all that was asked for, of which it tells what could not be.
  absl::Status Record() { return StatusOfDevice(gpu().Record(event_.get())); }
  absl::Status Await() { return StatusOfDevice(gpu().Await(event_.get())); }

 private:
  struct GiveBack {
    std::shared_ptr<kernels::cuda::Gpu> gpu;
    void operator()(kernels::cuda::Event event) const { gpu->Destroy(event); }
  };
  using Pointee = std::remove_pointer_t<kernels::cuda::Event>;

  DeviceEvent(kernels::cuda::Event event, GiveBack give_back)
      : event_(event, std::move(give_back)) {}

  kernels::cuda::Gpu& gpu() { return *event_.get_deleter().gpu; }

  std::unique_ptr<Pointee, GiveBack> event_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_DEVICE_EVENT_H_
