// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_STEP_ARENA_H_
#define OUTRIDER_CORE_CUDA_MODEL_STEP_ARENA_H_

#include "core/cuda_model/step_inputs.h"

namespace outrider {

// Memory of the device, for the largest step. There is one, which all steps use
// one after the other.
struct StepArena {
  StepArrays inputs = {};
  float* x = nullptr;          // [rows, hidden]: the residual stream
  void* normed = nullptr;      // [rows, hidden]
  float* qkv = nullptr;        // [rows, query_size + 2 * kv_size]
  void* queries = nullptr;     // [rows, query_size]
  void* attended = nullptr;    // [rows, query_size]
  void* inner = nullptr;       // [rows, intermediate]
  float* logits = nullptr;     // [rows, vocab]
  float* attention = nullptr;  // what attention leaves to its merge
  const float* cos = nullptr;
  const float* sin = nullptr;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_STEP_ARENA_H_
