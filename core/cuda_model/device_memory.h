// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_DEVICE_MEMORY_H_
#define OUTRIDER_CORE_CUDA_MODEL_DEVICE_MEMORY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/kernels/cuda/gpu.h"

namespace outrider {

using kernels::cuda::Gpu;

// Memory of a GPU, given back when it goes.
class DeviceMemory {
 public:
  // RESOURCE_EXHAUSTED, with what it was for.
  static absl::StatusOr<DeviceMemory> Allocate(std::shared_ptr<Gpu> gpu,
                                               size_t bytes,
                                               absl::string_view what) {
    void* const memory = gpu->Allocate(bytes);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat(what, ": out of memory on the GPU: ", bytes,
                       " bytes wanted, ", gpu->AvailableBytes(), " left"));
    }
    return DeviceMemory(memory, bytes, {std::move(gpu)});
  }
  // The same, of zeros, for what is read or copied in ranges of which a part is
  // never written. Awaits the device. UNAVAILABLE: it is lost.
  static absl::StatusOr<DeviceMemory> AllocateZeroed(
      const std::shared_ptr<Gpu>& gpu, size_t bytes, absl::string_view what) {
    absl::StatusOr<DeviceMemory> memory = Allocate(gpu, bytes, what);
    if (!memory.ok()) return memory;
    gpu->Zero(memory->data(), bytes);
    // Or it might be given back before its turn comes.
    const std::string failure = gpu->Finish();
    if (failure.empty()) return memory;
    return absl::UnavailableError(absl::StrCat(what, ": ", failure));
  }

  void* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_.get());
  }

 private:
  struct GiveBack {
    std::shared_ptr<Gpu> gpu;
    void operator()(void* memory) const { gpu->Free(memory); }
  };

  DeviceMemory(void* memory, size_t bytes, GiveBack give_back)
      : memory_(memory, std::move(give_back)), bytes_(bytes) {}

  std::unique_ptr<void, GiveBack> memory_;
  size_t bytes_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_DEVICE_MEMORY_H_
