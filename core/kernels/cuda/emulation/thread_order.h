// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_THREAD_ORDER_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_THREAD_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace outrider::kernels::cuda::emulation {

// Which of a block's threads runs next, of those that can go on. With an odd
// seed it is any of them; with an even one, a warp goes on as long as it can,
// so that it is as far ahead of the others as the next barrier lets it.
class ThreadOrder {
 public:
  // A launch begins: the same seed gives the same order.
  void Restart(uint64_t seed) {
    random_.seed(seed);
    warps_hurry_ = seed % 2 == 0;
  }

  bool is_empty() const { return ready_.empty(); }
  void Clear() { ready_.clear(); }
  // Threads of a warp that have met in an operation go on.
  void Add(int thread) { ready_.push_back(thread); }
  // All threads of the block can go on.
  void AddAll(int num_threads, int warp_size) {
    std::vector<int> warps((num_threads + warp_size - 1) / warp_size);
    std::iota(warps.begin(), warps.end(), 0);
    if (warps_hurry_) Shuffle(warps);
    for (const int warp : warps) {
      const int end = std::min((warp + 1) * warp_size, num_threads);
      for (int i = warp * warp_size; i < end; ++i) Add(i);
    }
  }
  int Take() {
    // Last are the threads that have just met.
    if (!warps_hurry_) {
      std::swap(ready_[random_() % ready_.size()], ready_.back());
    }
    const int next = ready_.back();
    ready_.pop_back();
    return next;
  }

  template <typename T>
  void Shuffle(std::vector<T>& values) {
    std::shuffle(values.begin(), values.end(), random_);
  }

 private:
  std::mt19937_64 random_;
  bool warps_hurry_ = false;
  std::vector<int> ready_;
};

}  // namespace outrider::kernels::cuda::emulation

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_THREAD_ORDER_H_
