// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/pinned_pool.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <vector>

#include "core/base/mutex.h"

namespace outrider {

namespace {

// Sizes are few, so that a piece serves whoever comes next: powers of two, and
// multiples of this one from there on, as a whole row of logits would waste up
// to half of a power of two.
constexpr size_t kLargeStep = size_t{64} << 10;

size_t SizeOfPiece(size_t bytes) {
  if (bytes <= kLargeStep) return std::bit_ceil(bytes);
  return (bytes + kLargeStep - 1) / kLargeStep * kLargeStep;
}

}  // namespace

class PinnedPool::State {
 public:
  State(std::shared_ptr<kernels::cuda::Gpu> gpu, size_t most_bytes)
      : gpu_(std::move(gpu)), most_bytes_(most_bytes) {}
  ~State() {
    for (const auto& [bytes, pieces] : free_) {
      for (void* const piece : pieces) gpu_->FreePinned(piece);
    }
  }

  void* Take(size_t bytes) {
    {
      const MutexLock lock(mutex_);
      std::vector<void*>& pieces = free_[bytes];
      if (!pieces.empty()) {
        void* const piece = pieces.back();
        pieces.pop_back();
        return piece;
      }
      if (bytes > most_bytes_ - bytes_) return nullptr;
      bytes_ += bytes;
    }
    void* const piece = gpu_->AllocatePinned(bytes);
    if (piece == nullptr) {
      const MutexLock lock(mutex_);
      bytes_ -= bytes;
    }
    return piece;
  }

  void GiveBack(void* piece, size_t bytes) {
    const MutexLock lock(mutex_);
    free_[bytes].push_back(piece);
  }

 private:
  const std::shared_ptr<kernels::cuda::Gpu> gpu_;
  const size_t most_bytes_;
  Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<size_t, std::vector<void*>> free_ ABSL_GUARDED_BY(mutex_);
};

PinnedPool::PinnedPool(std::shared_ptr<kernels::cuda::Gpu> gpu,
                       size_t most_bytes)
    : state_(std::make_shared<State>(std::move(gpu), most_bytes)) {}

std::shared_ptr<void> PinnedPool::Take(size_t bytes) {
  const size_t size = SizeOfPiece(bytes);
  void* const piece = state_->Take(size);
  if (piece == nullptr) return nullptr;
  return {piece, [state = state_, size](void* memory) {
            state->GiveBack(memory, size);
          }};
}

std::shared_ptr<void> PinnedPool::TakeAny(size_t bytes) {
  if (auto pinned = Take(bytes)) return pinned;
  return {std::malloc(bytes), &std::free};
}

}  // namespace outrider
