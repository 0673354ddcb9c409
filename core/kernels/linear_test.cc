// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/linear.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/kernels/random_values.h"
#include "core/kernels/test_variants.h"
#include "core/kernels/weight_memory.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

// A linear layer of random weights, its packed form and a reference.
struct Layer {
  Layer(int out_size, int in_size, ElementType type)
      : out(out_size),
        in(in_size),
        rounded(ToBFloat16(RandomValues(static_cast<size_t>(out) * in, 3))),
        values(type == ElementType::kBFloat16
                   ? ToFloat(rounded)
                   : RandomValues(static_cast<size_t>(out) * in, 3)),
        bias(RandomValues(out, 5)),
        packed({{type == ElementType::kBFloat16 ? ConstElements(rounded.data())
                                                : ConstElements(values.data()),
                 out}},
               in) {}

  std::vector<float> Run(const std::vector<float>& x,
                         const Execution& execution) const {
    std::vector<float> y(x.size() / in * out, 77.0f);
    Linear({.x = x.data(),
            .num_rows = static_cast<int>(x.size()) / in,
            .weight = &packed,
            .bias = bias.data(),
            .y = y.data()},
           execution);
    return y;
  }

  // Computes in double, over what the kernel multiplies; `scale` is the sum of
  // magnitudes, to which rounding errors are proportional.
  double Reference(const float* row, int n, double* scale) const {
    double sum = bias[n];
    *scale = std::abs(bias[n]);
    for (int k = 0; k < in; ++k) {
      const float x = packed.type() == ElementType::kBFloat16
                          ? ToFloat(ToBFloat16(row[k]))
                          : row[k];
      const double product =
          double{x} * values[static_cast<size_t>(n) * in + k];
      sum += product;
      *scale += std::abs(product);
    }
    return sum;
  }

  int out;
  int in;
  std::vector<BFloat16> rounded;
  std::vector<float> values;  // [out, in], as the kernel sees them
  std::vector<float> bias;
  PackedWeight packed;
};

bool SameBits(const float* a, const float* b, size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

class LinearTest : public ::testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(AllLevels, LinearTest,
                         ::testing::ValuesIn(AllVariants()), VariantName);

TEST_P(LinearTest, AgreesWithDoublePrecisionForOddShapesAndTails) {
  for (const int in : {1, 2, 7, 33, 384, 1000}) {
    for (const int out : {1, 17, 40, 64, 70}) {
      const Layer layer(out, in, GetParam().type);
      for (const int num_rows : {1, 2, 3, 9, 11}) {
        const auto x = RandomValues(static_cast<size_t>(num_rows) * in, 9);
        const auto y = layer.Run(x, GetParam().level);
        for (int m = 0; m < num_rows; ++m) {
          for (int n = 0; n < out; ++n) {
            double scale;
            const double expected = layer.Reference(&x[m * in], n, &scale);
            ASSERT_NEAR(y[m * out + n], expected, 4e-6 * scale)
                << in << " to " << out << ", row " << m << " of " << num_rows;
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, ARowHasTheSameBitsWhateverStandsBesideIt) {
  const Layer layer(70, 101, GetParam().type);
  const auto x = RandomValues(300 * 101, 11);
  std::vector<float> alone;  // every row by itself
  for (int m = 0; m < 300; ++m) {
    const auto y =
        layer.Run({&x[m * 101], &x[m * 101] + 101}, GetParam().level);
    alone.insert(alone.end(), y.begin(), y.end());
  }
  std::vector<int> counts = {64, 100, 299};  // 299: more than go together
  for (int count = 2; count <= 18; ++count) counts.push_back(count);
  for (const int count : counts) {
    for (const int first : {0, 1}) {
      const auto y = layer.Run({&x[first * 101], &x[first * 101] + count * 101},
                               GetParam().level);
      EXPECT_TRUE(SameBits(y.data(), &alone[first * 70], y.size()))
          << count << " rows from row " << first;
    }
  }
}

TEST_P(LinearTest, ARowHasTheSameBitsWhateverTheNumberOfThreads) {
  const Layer layer(500, 333, GetParam().type);  // enough for several parts
  const auto x = RandomValues(300 * 333, 25);
  const auto alone = layer.Run(x, GetParam().level);
  for (const int num_threads : {2, 3, 5}) {
    ThreadPool pool(num_threads);
    for (const int num_rows : {1, 2, 5, 9, 16, 17, 33, 300}) {
      const auto y =
          layer.Run({&x[0], &x[0] + num_rows * 333}, {GetParam().level, &pool});
      EXPECT_TRUE(SameBits(y.data(), alone.data(), y.size()))
          << num_rows << " rows on " << num_threads << " threads";
    }
  }
}

TEST_P(LinearTest, ANanInOneRowStaysInThatRow) {
  const Layer layer(40, 64, GetParam().type);
  auto x = RandomValues(9 * 64, 13);
  const auto clean = layer.Run(x, GetParam().level);
  x[4 * 64 + 17] = std::numeric_limits<float>::quiet_NaN();
  const auto y = layer.Run(x, GetParam().level);
  EXPECT_TRUE(SameBits(&y[0], &clean[0], 4 * 40));
  EXPECT_TRUE(SameBits(&y[5 * 40], &clean[5 * 40], 4 * 40));
  for (int n = 0; n < 40; ++n) EXPECT_TRUE(std::isnan(y[4 * 40 + n])) << n;
}

TEST_P(LinearTest, AddingToTheOutputIsOneRoundingOfTheTwoSums) {
  const Layer layer(50, 65, GetParam().type);
  const auto x = RandomValues(7 * 65, 15);
  const auto replaced = layer.Run(x, GetParam().level);
  const auto residual = RandomValues(7 * 50, 17);
  auto y = residual;
  Linear({.x = x.data(),
          .num_rows = 7,
          .weight = &layer.packed,
          .bias = layer.bias.data(),
          .y = y.data(),
          .output = Output::kAdd},
         GetParam().level);
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], replaced[i] + residual[i]) << i;
  }
}

TEST_P(LinearTest, NothingIsWrittenAfterTheLastOutput) {
  const Layer layer(33, 5, GetParam().type);
  const auto x = RandomValues(5, 19);
  std::vector<float> y(34, 77.0f);
  Linear({.x = x.data(), .num_rows = 1, .weight = &layer.packed, .y = y.data()},
         GetParam().level);
  EXPECT_NE(y[32], 77.0f);
  EXPECT_EQ(y[33], 77.0f);
}

TEST_P(LinearTest, NoRowsAreNoWork) {
  const Layer layer(8, 8, GetParam().type);
  EXPECT_TRUE(layer.Run({}, GetParam().level).empty());
}

TEST(LinearLevelsTest, WithFusedMultiplyAddTheyAgreeBitForBitInFloat32) {
  const Layer layer(70, 1000, ElementType::kFloat32);
  const auto x = RandomValues(5 * 1000, 21);
  std::vector<std::vector<float>> results;
  for (const Level level : SupportedLevels()) {
    if (level != Level::kPortable) results.push_back(layer.Run(x, level));
  }
  for (const auto& y : results) {
    EXPECT_TRUE(SameBits(y.data(), results[0].data(), y.size()));
  }
}

TEST(PackedWeightTest, IsTheSameInMemoryThatIsGiven) {
  const std::vector<float> values = RandomValues(size_t{70} * 33, 27);
  const std::vector<WeightRows> parts = {{ConstElements(values.data()), 70}};
  WeightMemory memory;
  const PackedWeight first(parts, 33, &memory);
  const PackedWeight second(parts, 33, &memory);
  const PackedWeight alone(parts, 33);
  for (const PackedWeight* given : {&first, &second}) {
    ASSERT_EQ(given->num_bytes(), alone.num_bytes());
    EXPECT_EQ(std::memcmp(given->data(), alone.data(), alone.num_bytes()), 0);
  }
}

TEST(PackedWeightTest, RowsComeBackAsTheyWere) {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kBFloat16}) {
    const Layer layer(70, 33, type);
    for (int n = 0; n < 70; ++n) {
      std::vector<float> row(33);
      layer.packed.CopyRow(n, row.data());
      EXPECT_TRUE(SameBits(row.data(), &layer.values[n * 33], 33)) << n;
    }
  }
}

TEST(PackedWeightTest, StackedPartsAreTheRowsOfOneMatrix) {
  const auto values = RandomValues(50 * 20, 23);
  const PackedWeight whole({{values.data(), 50}}, 20);
  const PackedWeight stacked({{values.data(), 30},
                              {values.data() + 600, 7},
                              {values.data() + 740, 13}},
                             20);
  ASSERT_EQ(stacked.out(), 50);
  ASSERT_EQ(stacked.num_bytes(), whole.num_bytes());
  EXPECT_EQ(std::memcmp(stacked.data(), whole.data(), whole.num_bytes()), 0);
}

}  // namespace
}  // namespace outrider::kernels
