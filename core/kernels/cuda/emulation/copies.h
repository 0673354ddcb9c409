// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_COPIES_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_COPIES_H_

#include <cstddef>
#include <cstring>
#include <deque>

namespace outrider::kernels::cuda::emulation {

// What a thread has asked to be copied to shared memory (async_copy.h). It is
// copied as late as may be, when the thread waits for it; its place is NaN from
// the moment at which it is asked for.
class Copies {
 public:
  // Zeros instead of what lies at `from` where that is null. False: another
  // copy is on its way to that place, and which of them comes last nobody
  // knows.
  bool Ask(void* to, const void* from, size_t bytes) {
    for (const Copy& copy : waiting_) {
      if (copy.to == to) return false;
    }
    std::memset(to, 0xFF, bytes);
    waiting_.push_back({to, from, bytes, num_groups_});
    return true;
  }
  void EndGroup() { ++num_groups_; }
  // Waits for all groups that have ended but the latest `left`.
  void Wait(int left) {
    for (; !waiting_.empty(); waiting_.pop_front()) {
      const Copy& copy = waiting_.front();
      if (copy.group >= num_groups_ - left) return;
      if (copy.from == nullptr) {
        std::memset(copy.to, 0, copy.bytes);
      } else {
        std::memcpy(copy.to, copy.from, copy.bytes);
      }
    }
  }
  bool is_empty() const { return waiting_.empty(); }
  void Clear() { waiting_.clear(); }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    int group;
  };
  std::deque<Copy> waiting_;
  int num_groups_ = 0;
};

}  // namespace outrider::kernels::cuda::emulation

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_COPIES_H_
