// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_KERNEL_TEST_H_
#define OUTRIDER_CORE_KERNELS_CUDA_KERNEL_TEST_H_

#include <string>
#include <tuple>

#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/random_values.h"
#include "gtest/gtest.h"

namespace outrider::kernels::cuda {

// Each test with both types of elements, and three times: with threads in
// another order and other data each time.
class KernelTest
    : public ::testing::TestWithParam<std::tuple<Element, uint64_t>> {
 protected:
  KernelTest() { emulation::SetSeed(seed()); }

  Element element() const { return std::get<0>(GetParam()); }
  uint64_t seed() const { return std::get<1>(GetParam()); }
  // Where the seeds of this time's numbers begin.
  uint32_t data() const { return 1000 * (static_cast<uint32_t>(seed()) - 1); }
  // The greatest relative error of rounding to the type.
  float unit() const {
    return element() == Element::kBFloat16 ? 0x1p-8f : 0x1p-11f;
  }
};

inline std::string KernelTestName(
    const ::testing::TestParamInfo<KernelTest::ParamType>& test) {
  const bool is_bfloat16 = std::get<0>(test.param) == Element::kBFloat16;
  return std::string(is_bfloat16 ? "bfloat16" : "float16") + "_order_" +
         std::to_string(std::get<1>(test.param));
}

#define OUTRIDER_INSTANTIATE_KERNEL_TEST(name)                       \
  INSTANTIATE_TEST_SUITE_P(                                          \
      All, name,                                                     \
      ::testing::Combine(                                            \
          ::testing::Values(Element::kBFloat16, Element::kFloat16),  \
          ::testing::Values(uint64_t{1}, uint64_t{2}, uint64_t{3})), \
      KernelTestName)

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_KERNEL_TEST_H_
