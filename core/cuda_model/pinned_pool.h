// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_PINNED_POOL_H_
#define OUTRIDER_CORE_CUDA_MODEL_PINNED_POOL_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "core/kernels/cuda/gpu.h"

namespace outrider {

// Host memory that a GPU copies to by itself. Taking it from the system costs
// milliseconds, so what was given back is kept and handed out again.
// Thread-safe: rows go when whoever reads them is done.
class PinnedPool {
 public:
  explicit PinnedPool(std::shared_ptr<kernels::cuda::Gpu> gpu);

  // Null where the system has none. Lives on after the pool.
  std::shared_ptr<void> Take(size_t bytes);
  // Where the system has none, memory that is not pinned: a copy to it is
  // slower, but a session that lives goes on.
  std::shared_ptr<void> TakeAny(size_t bytes);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_PINNED_POOL_H_
