// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_SHARED_OBJECTS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_SHARED_OBJECTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>

namespace outrider::kernels::cuda::emulation {

// NaN in every floating-point type, -1 in integers.
inline void Poison(void* begin, size_t bytes) {
  if (bytes > 0) std::memset(begin, 0xFF, bytes);
}

// The arrays in static shared memory of all kernels.
class SharedObjects {
 public:
  void BeginLaunch(size_t dynamic_bytes) {
    ++launch_;
    bytes_ = dynamic_bytes;
  }
  void BeginBlock() { ++block_; }

  // A thread is about to read or write it. The first one of its block finds it
  // poisoned. Returns what the launch has used of shared memory so far.
  size_t Use(void* begin, size_t bytes) {
    auto object = std::find_if(
        objects_.begin(), objects_.end(),
        [begin](const Object& known) { return known.begin == begin; });
    if (object == objects_.end()) {
      object = objects_.insert(objects_.end(), {.begin = begin});
    }
    if (object->block != block_) {
      object->block = block_;
      Poison(begin, bytes);
    }
    if (object->launch != launch_) {
      object->launch = launch_;
      bytes_ += bytes;
    }
    return bytes_;
  }

 private:
  struct Object {
    void* begin = nullptr;
    uint64_t launch = 0;  // the last one that used it
    uint64_t block = 0;   // likewise
  };

  std::deque<Object> objects_;
  uint64_t launch_ = 0;
  uint64_t block_ = 0;  // of all launches
  size_t bytes_ = 0;    // of the launch
};

}  // namespace outrider::kernels::cuda::emulation

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_SHARED_OBJECTS_H_
