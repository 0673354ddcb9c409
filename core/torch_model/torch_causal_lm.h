// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_TORCH_CAUSAL_LM_H_
#define OUTRIDER_CORE_TORCH_MODEL_TORCH_CAUSAL_LM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cuda_model/open_gpu.h"
#include "core/model/causal_lm.h"

namespace outrider {

struct TorchCausalLmOptions {
  std::string model_directory = {};
  // "cpu", "cuda" or "cuda:N".
  std::string device = "cpu";
  // "float32", "bfloat16" or "auto": bfloat16 where the checkpoint has it and
  // the CPU computes with it (AVX-512 BF16 or AMX), else float32, which loses
  // nothing of a float16; activations are float32 in any case. The log says
  // which and why. A GPU has "bfloat16" and "float16", and "auto" takes that of
  // the checkpoint.
  std::string dtype = "auto";
  // On the CPU a level of core/kernels by name, or "auto": the fastest one, by
  // a short measurement. A GPU takes no other than "auto". "aten": torch's own
  // operations everywhere, as a reference. What it came to is
  // ModelInfo::numerics.
  std::string kernels = "auto";
  // Of a pass on the CPU, the calling one included. Bits do not depend on it.
  int num_threads = 1;
  // What a GPU is opened with.
  std::string cuda_library = kCudaLibrary;
};

// A model whose files libtorch reads, and which it computes on a CPU; on a GPU
// core/cuda_model does. This header and its users are free of torch.
//   NOT_FOUND            no model directory, config.json or checkpoint
//   INVALID_ARGUMENT     damaged files, or options that name nothing
//   UNIMPLEMENTED        the model needs what we do not have: named
//   FAILED_PRECONDITION  no such GPU, no driver, or no library of kernels
//   RESOURCE_EXHAUSTED   no memory for the weights
//   UNAVAILABLE          the GPU failed
absl::StatusOr<std::unique_ptr<CausalLm>> LoadTorchCausalLm(
    const TorchCausalLmOptions& options);

// Whether the directory's files fit each other, without reading the weights:
// config.json, and the checkpoint's names, shapes and dtypes. Codes as above.
absl::Status CheckTorchCausalLm(const std::string& model_directory);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_TORCH_CAUSAL_LM_H_
