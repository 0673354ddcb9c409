// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/norm.h"

#include <cmath>
#include <vector>

#include "core/kernels/cuda/kernel_test.h"
#include "core/kernels/norm.h"

namespace outrider::kernels::cuda {
namespace {

// Large, as it would hide among the roundings otherwise.
constexpr float kEpsilon = 0.25f;

// Some rows and the parameters of a norm, with what the CPU makes of them.
struct Rows {
  Rows(uint32_t data, int count, int row_size)
      : num_rows(count),
        size(row_size),
        x(RandomValues(size_t(count) * row_size, data + 3)),
        weight(RandomValues(row_size, data + 5)),
        bias(RandomValues(row_size, data + 7)) {
    for (float& value : x) value = 3.0f * value + 0.5f;
  }

  std::vector<float> OnCpu(bool is_layer_norm) const {
    std::vector<float> y(x.size());
    const kernels::NormArgs args = {
        .x = x.data(),
        .weight = weight.data(),
        .bias = is_layer_norm ? bias.data() : nullptr,
        .num_rows = num_rows,
        .size = size,
        .epsilon = kEpsilon,
        .y = y.data()};
    if (is_layer_norm) {
      kernels::LayerNorm(args, Level::kPortable);
    } else {
      kernels::RmsNorm(args, Level::kPortable);
    }
    return y;
  }

  int num_rows;
  int size;
  std::vector<float> x, weight, bias;
};

class CudaNormTest : public KernelTest {
 protected:
  // The rows of x that `rows` names, or all of them.
  std::vector<uint16_t> Run(const Rows& input, bool is_layer_norm,
                            const std::vector<int>& rows = {}) const {
    const DeviceArray<float> x(input.x), weight(input.weight), bias(input.bias);
    const DeviceArray<int> indices(rows);
    const int num_rows =
        rows.empty() ? input.num_rows : static_cast<int>(rows.size());
    const DeviceArray<uint16_t> y(size_t(num_rows) * input.size);
    const NormArgs args = {.element = element(),
                           .x = x.data(),
                           .rows = rows.empty() ? nullptr : indices.data(),
                           .weight = weight.data(),
                           .bias = is_layer_norm ? bias.data() : nullptr,
                           .num_rows = num_rows,
                           .size = input.size,
                           .epsilon = kEpsilon,
                           .y = y.data()};
    if (is_layer_norm) {
      LayerNorm(args, nullptr);
    } else {
      RmsNorm(args, nullptr);
    }
    return y.Read();
  }

  void ExpectCpu(const Rows& rows) const {
    for (const bool is_layer_norm : {false, true}) {
      const auto expected = rows.OnCpu(is_layer_norm);
      const auto y = ValuesOf(element(), Run(rows, is_layer_norm));
      ASSERT_EQ(y.size(), expected.size());
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_NEAR(y[i], expected[i],
                    1.01f * unit() * std::abs(expected[i]) + 1e-5f)
            << rows.num_rows << " rows of " << rows.size << ", place " << i;
      }
    }
  }
};
OUTRIDER_INSTANTIATE_KERNEL_TEST(CudaNormTest);

TEST_P(CudaNormTest, AgreesWithTheCpuForAnySize) {
  for (const int size : {4, 64, 100, 1024, 1028, 2500}) {
    ExpectCpu(Rows(data(), 3, size));
  }
}

TEST_P(CudaNormTest, AgreesWithTheCpuFromOneToSixteenRows) {
  for (int num_rows = 1; num_rows <= 16; ++num_rows) {
    ExpectCpu(Rows(data(), num_rows, 100));
  }
}

TEST_P(CudaNormTest, ARowHasTheSameBitsWhicheverRowsAreWanted) {
  const Rows rows(data(), 5, 136);
  for (const bool is_layer_norm : {false, true}) {
    const auto all = Run(rows, is_layer_norm);
    const std::vector<int> wanted = {4, 1, 1, 3};
    const auto some = Run(rows, is_layer_norm, wanted);
    for (size_t i = 0; i < some.size(); ++i) {
      EXPECT_EQ(some[i], all[wanted[i / 136] * 136 + i % 136]) << i;
    }
  }
}

}  // namespace
}  // namespace outrider::kernels::cuda
