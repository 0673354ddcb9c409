// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_PINNED_POOL_H_
#define OUTRIDER_CORE_CUDA_MODEL_PINNED_POOL_H_

#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "core/kernels/cuda/gpu.h"

namespace outrider {

// Host memory that a GPU copies to by itself. Taking it from the system costs
// milliseconds, so what was given back is kept and handed out again. The system
// cannot use it for anything else, so there is a most. Thread-safe: rows go
// when whoever reads them is done.
class PinnedPool {
 public:
  // `most_bytes`: of pieces that are out and of those that are kept.
  explicit PinnedPool(std::shared_ptr<kernels::cuda::Gpu> gpu,
                      size_t most_bytes = std::numeric_limits<size_t>::max());

  // Null where that is too much, or the system has none. Lives on after the
  // pool.
  std::shared_ptr<void> Take(size_t bytes);
  // Memory that is not pinned in place of none: a copy to it is slower, but a
  // session that lives goes on.
  std::shared_ptr<void> TakeAny(size_t bytes);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_PINNED_POOL_H_
