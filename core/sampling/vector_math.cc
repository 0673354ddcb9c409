// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/vector_math.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kLanes = 16;  // independent chains: one cache line of floats

// Cody and Waite: x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts so
// that n ln 2 is exact; e^r by its Taylor series, whose first left-out term is
// below 2^-53; times 2^n by its bits.
inline double ExpOf(double x) {
  constexpr double kLog2E = 1.4426950408889634074;
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer
  const double clamped = x < -708.0 ? -708.0 : x;
  const double shifted = clamped * kLog2E + kRound;
  const double n = shifted - kRound;
  const double r = (clamped - n * kLn2High) - n * kLn2Low;
  double series = 1.0 / 6227020800.0;
  series = series * r + 1.0 / 479001600.0;
  series = series * r + 1.0 / 39916800.0;
  series = series * r + 1.0 / 3628800.0;
  series = series * r + 1.0 / 362880.0;
  series = series * r + 1.0 / 40320.0;
  series = series * r + 1.0 / 5040.0;
  series = series * r + 1.0 / 720.0;
  series = series * r + 1.0 / 120.0;
  series = series * r + 1.0 / 24.0;
  series = series * r + 1.0 / 6.0;
  series = series * r + 0.5;
  series = series * r * r + r + 1.0;
  // The integer n stands in the low bits of `shifted`.
  const uint64_t exponent = (std::bit_cast<uint64_t>(shifted) + 1023) << 52;
  const double value = series * std::bit_cast<double>(exponent);
  return x < -708.0 ? 0.0 : value;
}

}  // namespace

void ExpInPlace(absl::Span<double> values) {
  for (double& value : values) value = ExpOf(value);
}

RowCheck CheckRow(absl::Span<const float> values) {
  constexpr float kGreatest = std::numeric_limits<float>::max();
  int num_valid = 0;
  int num_possible = 0;
  for (const float value : values) {
    num_valid += value <= kGreatest ? 1 : 0;  // false for NaN and +infinity
    num_possible += value > -kInfinity ? 1 : 0;
  }
  return {.all_valid = num_valid == static_cast<int>(values.size()),
          .any_possible = num_possible > 0};
}

int Argmax(absl::Span<const float> values) {
  float greatest[kLanes];
  std::fill_n(greatest, kLanes, -kInfinity);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      greatest[lane] = value > greatest[lane] ? value : greatest[lane];
    }
  }
  float maximum = *std::max_element(greatest, greatest + kLanes);
  for (; i < values.size(); ++i) maximum = std::max(maximum, values[i]);
  return static_cast<int>(std::find(values.begin(), values.end(), maximum) -
                          values.begin());
}

}  // namespace outrider
