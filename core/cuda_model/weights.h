// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_WEIGHTS_H_
#define OUTRIDER_CORE_CUDA_MODEL_WEIGHTS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cuda_model/device_memory.h"

namespace outrider {

// A model's weights in the memory of a GPU.

struct CudaLinear {
  kernels::cuda::PackedMatrix matrix = {};
  const float* bias = nullptr;  // [out], or null
};

struct CudaNorm {
  const float* weight = nullptr;  // null: there is no such norm
  const float* bias = nullptr;
};

struct CudaLayer {
  CudaNorm attention_norm = {};
  CudaLinear qkv = {};
  CudaNorm query_norm = {};
  CudaNorm key_norm = {};
  CudaLinear output = {};
  CudaNorm feed_forward_norm = {};
  CudaLinear up = {};  // gate and up, where there is a gate
  CudaLinear down = {};
};

struct CudaWeights {
  kernels::cuda::PackedMatrix token_embedding = {};
  const float* position_embedding = nullptr;  // [context_length, hidden_size]
  std::vector<CudaLayer> layers = {};
  CudaNorm final_norm = {};
  CudaLinear head = {};
  std::vector<DeviceMemory> memory = {};  // of all of these
};

// Brings weights into the memory of a GPU, in the order in which its kernels
// read them. Errors: RESOURCE_EXHAUSTED, and UNAVAILABLE where the GPU fails.
class WeightUploader {
 public:
  // The host's memory may go when a call returns.

  // What a checkpoint has: [out, in] of 16 bits each.
  struct Rows {
    const void* data = nullptr;
    int out = 0;
    int in = 0;
  };

  // Matrices pass through `staging_bytes` of the device's memory.
  static absl::StatusOr<WeightUploader> Make(std::shared_ptr<Gpu> gpu,
                                             kernels::cuda::Element element,
                                             size_t staging_bytes = size_t{64}
                                                                    << 20);

  absl::StatusOr<kernels::cuda::PackedMatrix> Matrix(const Rows& rows);
  // The first half is the gate, the second what it lets through.
  absl::StatusOr<kernels::cuda::PackedMatrix> GateAndUp(const Rows& rows);
  absl::StatusOr<const float*> Floats(absl::Span<const float> values);

  // All that was uploaded.
  std::vector<DeviceMemory> TakeMemory() { return std::move(memory_); }

 private:
  WeightUploader(std::shared_ptr<Gpu> gpu, kernels::cuda::Element element,
                 DeviceMemory staging, size_t staging_bytes)
      : gpu_(std::move(gpu)),
        element_(element),
        staging_(std::move(staging)),
        staging_bytes_(staging_bytes) {}

  absl::StatusOr<kernels::cuda::PackedMatrix> Empty(const Rows& rows);
  absl::Status Fill(const Rows& rows, kernels::cuda::Placement placement,
                    void* tiles);
  absl::Status Finish();

  std::shared_ptr<Gpu> gpu_;
  kernels::cuda::Element element_;
  DeviceMemory staging_;
  size_t staging_bytes_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_WEIGHTS_H_
