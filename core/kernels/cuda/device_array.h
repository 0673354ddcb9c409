// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_DEVICE_ARRAY_H_
#define OUTRIDER_CORE_KERNELS_CUDA_DEVICE_ARRAY_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/kernels/cuda/numbers.h"
#include "core/kernels/cuda/runtime.h"
#include "gtest/gtest.h"

// The tests of this folder use it, which run on a GPU or in emulation.
namespace outrider::kernels::cuda {

// An array in device memory of exactly that size.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values)
      : size_(values.size()), data_(AllocateMemory(size_ * sizeof(T))) {
    CopyToDevice(data_, values.data(), size_ * sizeof(T), nullptr);
    EXPECT_EQ(Synchronize(nullptr), "");  // `values` may go
  }
  // Fills it with the bytes 0xFF: NaN, where nobody writes.
  explicit DeviceArray(size_t size) : DeviceArray(Unwritten(size)) {}
  ~DeviceArray() { FreeMemory(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return static_cast<T*>(data_); }

  // Fails the test if a kernel before has failed, and so do constructors.
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    CopyToHost(values.data(), data_, size_ * sizeof(T), nullptr);
    EXPECT_EQ(Synchronize(nullptr), "");
    return values;
  }

 private:
  static std::vector<T> Unwritten(size_t size) {
    std::vector<T> values(size);
    void* const bytes = values.data();
    if (size > 0) std::memset(bytes, 0xFF, size * sizeof(T));
    return values;
  }

  size_t size_;
  void* data_;
};

// Numbers as a kernel sees them: their bits, and what those are worth.
struct Rounded {
  std::vector<uint16_t> bits = {};
  std::vector<float> values = {};
};

inline uint16_t BitsOf(Element element, float x) {
  return element == Element::kBFloat16 ? FromFloat<Bf16>(x).bits
                                       : FromFloat<Half>(x).bits;
}

inline float ValueOf(Element element, uint16_t bits) {
  return element == Element::kBFloat16 ? ToFloat(Bf16{bits})
                                       : ToFloat(Half{bits});
}

inline std::vector<float> ValuesOf(Element element,
                                   const std::vector<uint16_t>& bits) {
  std::vector<float> values;
  for (const uint16_t each : bits) values.push_back(ValueOf(element, each));
  return values;
}

inline Rounded Round(Element element, const std::vector<float>& values) {
  Rounded rounded;
  for (const float x : values) rounded.bits.push_back(BitsOf(element, x));
  rounded.values = ValuesOf(element, rounded.bits);
  return rounded;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_DEVICE_ARRAY_H_
