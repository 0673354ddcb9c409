// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/vector_math.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/check.h"
#include "core/kernels/instruction_set.h"
#include "core/kernels/places_at_least.h"

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Cody and Waite: x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts so
// that n ln 2 is exact; e^r by its Taylor series, whose first left-out term is
// below 2^-53; times 2^n by its bits.
OUTRIDER_INLINE double ExpOf(double x) {
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

OUTRIDER_INLINE void ExpLoop(absl::Span<double> values) {
  for (double& value : values) value = ExpOf(value);
}
OUTRIDER_AVX2 void ExpAvx2(absl::Span<double> values) { ExpLoop(values); }
OUTRIDER_AVX512 void ExpAvx512(absl::Span<double> values) { ExpLoop(values); }

template <typename Value>
OUTRIDER_INLINE void SoftmaxLoop(const Value* logits, double maximum,
                                 double temperature, double* weights,
                                 size_t size) {
  for (size_t i = 0; i < size; ++i) {
    weights[i] =
        ExpOf((static_cast<double>(logits[i]) - maximum) / temperature);
  }
}
template <typename Value>
OUTRIDER_AVX2 void SoftmaxAvx2(const Value* logits, double maximum,
                               double temperature, double* weights,
                               size_t size) {
  SoftmaxLoop(logits, maximum, temperature, weights, size);
}
template <typename Value>
OUTRIDER_AVX512 void SoftmaxAvx512(const Value* logits, double maximum,
                                   double temperature, double* weights,
                                   size_t size) {
  SoftmaxLoop(logits, maximum, temperature, weights, size);
}

OUTRIDER_INLINE double SumLoop(const double* values, size_t size) {
  constexpr size_t kSums = 8;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (size_t lane = 0; lane < kSums; ++lane) sums[lane] += values[i + lane];
  }
  for (size_t lane = 0; i + lane < size; ++lane) sums[lane] += values[i + lane];
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}
OUTRIDER_AVX2 double SumAvx2(const double* values, size_t size) {
  return SumLoop(values, size);
}
OUTRIDER_AVX512 double SumAvx512(const double* values, size_t size) {
  return SumLoop(values, size);
}

OUTRIDER_INLINE size_t CountLoop(absl::Span<const double> values,
                                 double least) {
  size_t count = 0;
  for (const double value : values) count += value >= least ? 1 : 0;
  return count;
}
OUTRIDER_AVX2 size_t CountAvx2(absl::Span<const double> values, double least) {
  return CountLoop(values, least);
}
OUTRIDER_AVX512 size_t CountAvx512(absl::Span<const double> values,
                                   double least) {
  return CountLoop(values, least);
}

OUTRIDER_INLINE RowCheck CheckLoop(absl::Span<const float> values) {
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
OUTRIDER_AVX2 RowCheck CheckAvx2(absl::Span<const float> values) {
  return CheckLoop(values);
}
OUTRIDER_AVX512 RowCheck CheckAvx512(absl::Span<const float> values) {
  return CheckLoop(values);
}

// A vector register's values. In an array gcc 12 looks for the greatest of them
// one by one, and so it does in a vector that is wider than the CPU's.
template <typename Value, size_t kBytes>
using Vector [[gnu::vector_size(kBytes)]] = Value;

// The greatest value or the least one.
template <bool kIsGreatest, typename Value, size_t kBytes>
OUTRIDER_INLINE Value ExtremeLoop(const Value* values, size_t size) {
  using Lanes = Vector<Value, kBytes>;
  constexpr size_t kLanes = kBytes / sizeof(Value);
  constexpr size_t kChains = 4;  // that do not wait for each other
  const auto keep = [](const auto& next, auto& extreme) {
    if constexpr (kIsGreatest) {
      extreme = next > extreme ? next : extreme;
    } else {
      extreme = next < extreme ? next : extreme;
    }
  };
  constexpr Value kNone = std::numeric_limits<Value>::infinity();
  Value extreme = kIsGreatest ? -kNone : kNone;
  size_t i = 0;
  const auto take = [&](Lanes& chain) {
    Lanes next;
    std::memcpy(&next, values + i, sizeof(next));
    keep(next, chain);
    i += kLanes;
  };
  if (size >= kLanes) {
    Lanes chains[kChains];
    for (Lanes& chain : chains) chain = extreme + Lanes{};
    while (i + kChains * kLanes <= size) {
      for (Lanes& chain : chains) take(chain);
    }
    while (i + kLanes <= size) take(chains[0]);
    for (const Lanes& chain : chains) keep(chain, chains[0]);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const Value next = chains[0][lane];
      keep(next, extreme);
    }
  }
  for (; i < size; ++i) keep(values[i], extreme);
  return extreme;
}
template <bool kIsGreatest, typename Value>
OUTRIDER_AVX2 Value ExtremeAvx2(const Value* values, size_t size) {
  return ExtremeLoop<kIsGreatest, Value, 32>(values, size);
}
template <bool kIsGreatest, typename Value>
OUTRIDER_AVX512 Value ExtremeAvx512(const Value* values, size_t size) {
  return ExtremeLoop<kIsGreatest, Value, 64>(values, size);
}

// The first place of a value, or the size.
OUTRIDER_INLINE size_t FindLoop(const float* values, size_t size, float value) {
  constexpr size_t kBlock = 64;  // all of a block is looked at
  size_t begin = 0;
  for (; begin + kBlock <= size; begin += kBlock) {
    int count = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      count += values[begin + i] == value ? 1 : 0;
    }
    if (count > 0) break;
  }
  return std::find(values + begin, values + size, value) - values;
}
OUTRIDER_AVX2 size_t FindAvx2(const float* values, size_t size, float value) {
  return FindLoop(values, size, value);
}
OUTRIDER_AVX512 size_t FindAvx512(const float* values, size_t size,
                                  float value) {
  return FindLoop(values, size, value);
}

template <typename Value>
void SoftmaxWeightsOf(absl::Span<const Value> logits, double maximum,
                      double temperature, absl::Span<double> weights) {
  const auto loop =
      ForThisCpu(SoftmaxLoop<Value>, SoftmaxAvx2<Value>, SoftmaxAvx512<Value>);
  loop(logits.data(), maximum, temperature, weights.data(), logits.size());
}

template <bool kIsGreatest, typename Value>
Value ExtremeOf(absl::Span<const Value> values) {
  return ForThisCpu(
      ExtremeLoop<kIsGreatest, Value, 16>, ExtremeAvx2<kIsGreatest, Value>,
      ExtremeAvx512<kIsGreatest, Value>)(values.data(), values.size());
}
template <typename Value>
Value MaximumOf(absl::Span<const Value> values) {
  return ExtremeOf</*kIsGreatest=*/true>(values);
}

template <typename Value>
Value BoundOfTopOf(absl::Span<const Value> values, size_t count) {
  OUTRIDER_CHECK(count > 0);
  if (count > values.size() / 16) {
    return -std::numeric_limits<Value>::infinity();
  }
  const size_t num_parts = 4 * count;
  std::vector<Value> maxima;
  maxima.reserve(num_parts);
  size_t begin = 0;
  for (size_t part = 1; part <= num_parts; ++part) {
    const size_t end = part * values.size() / num_parts;
    maxima.push_back(MaximumOf(values.subspan(begin, end - begin)));
    begin = end;
  }
  const auto bound = maxima.begin() + static_cast<ptrdiff_t>(count - 1);
  std::nth_element(maxima.begin(), bound, maxima.end(), std::greater<>());
  return *bound;
}

}  // namespace

void ExpInPlace(absl::Span<double> values) {
  ForThisCpu(ExpLoop, ExpAvx2, ExpAvx512)(values);
}

void SoftmaxWeights(absl::Span<const float> logits, double maximum,
                    double temperature, absl::Span<double> weights) {
  SoftmaxWeightsOf(logits, maximum, temperature, weights);
}

void SoftmaxWeights(absl::Span<const double> logits, double maximum,
                    double temperature, absl::Span<double> weights) {
  SoftmaxWeightsOf(logits, maximum, temperature, weights);
}

double Sum(absl::Span<const double> values) {
  return ForThisCpu(SumLoop, SumAvx2, SumAvx512)(values.data(), values.size());
}

size_t CountAtLeast(absl::Span<const double> values, double least) {
  return ForThisCpu(CountLoop, CountAvx2, CountAvx512)(values, least);
}

std::vector<int> PlacesAtLeast(absl::Span<const double> values, double least) {
  std::vector<int> places(values.size());
  places.resize(kernels::PlacesAtLeast(values, least, places.data()));
  return places;
}

RowCheck CheckRow(absl::Span<const float> values) {
  return ForThisCpu(CheckLoop, CheckAvx2, CheckAvx512)(values);
}

float Maximum(absl::Span<const float> values) { return MaximumOf(values); }
double Maximum(absl::Span<const double> values) { return MaximumOf(values); }
float Minimum(absl::Span<const float> values) {
  return ExtremeOf</*kIsGreatest=*/false>(values);
}

float BoundOfTop(absl::Span<const float> values, size_t count) {
  return BoundOfTopOf(values, count);
}
double BoundOfTop(absl::Span<const double> values, size_t count) {
  return BoundOfTopOf(values, count);
}

int Argmax(absl::Span<const float> values) {
  const auto find = ForThisCpu(FindLoop, FindAvx2, FindAvx512);
  return static_cast<int>(find(values.data(), values.size(), Maximum(values)));
}

}  // namespace outrider
