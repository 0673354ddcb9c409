// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_WEIGHTS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_WEIGHTS_H_

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/top_rows.h"
#include "core/kernels/cuda/top_rows_look.h"

// Part of top_rows.cu: what a whole row weighs.
namespace outrider::kernels::cuda {

__device__ inline float SumOf(const Quad& quad) {
  return __fadd_rn(__fadd_rn(quad.of[0], quad.of[1]),
                   __fadd_rn(quad.of[2], quad.of[3]));
}

// What RowWeight takes its scale from, for float32 arithmetic: a conversion
// from or to double takes as long as an exponential.
struct Weighing {
  float top;
  float high;  // the scale, and
  float low;   // what rounding took from it
};

__device__ inline Weighing WeighingOf(float top, double scale) {
  // What is steeper has no float32, and weighs nothing but the greatest.
  constexpr double kSteepest = 1e30;
  scale = scale < kSteepest ? scale : kSteepest;
  const auto high = static_cast<float>(scale);
  return {top, high, static_cast<float>(scale - static_cast<double>(high))};
}

// What RowWeight rounds once: the distance is not rounded at all, as what
// rounding takes from it is multiplied as well.
__device__ inline float FarExponent(float logit, const Weighing& by) {
  constexpr float kNothing = -160.0f;
  const float distance = __fadd_rn(logit, -by.top);
  const float less_top = __fadd_rn(distance, -logit);
  const float lost =
      __fadd_rn(__fadd_rn(logit, -__fadd_rn(distance, -less_top)),
                __fadd_rn(-by.top, -less_top));
  const float small = __fmaf_rn(lost, by.high, __fmul_rn(distance, by.low));
  // What is no number is that of a masked token.
  return fmaxf(__fmaf_rn(distance, by.high, small), kNothing);
}

// RowWeights. A distance that is rounded, and its product once more, move an
// exponent of at most 64 by less than one rounding does one of 150, the largest
// of a weight above 0: these are within what RowWeight promises.
__device__ inline Quad Weigh(const Quad& x, const Weighing& by) {
  constexpr float kFar = -64.0f;
  Quad exponents;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float distance = __fadd_rn(x.of[i], -by.top);
    exponents.of[i] = __fmaf_rn(distance, by.high, __fmul_rn(distance, by.low));
  }
  if (!(exponents.of[0] >= kFar && exponents.of[1] >= kFar &&
        exponents.of[2] >= kFar && exponents.of[3] >= kFar)) {
#pragma unroll
    for (int i = 0; i < 4; ++i) exponents.of[i] = FarExponent(x.of[i], by);
  }
  Quad weights;
#pragma unroll
  for (int i = 0; i < 4; ++i) weights.of[i] = exp2f(exponents.of[i]);
  return weights;
}

// What the row weighs, or a thread's part of it.
struct RowSums {
  double rest;  // 0, where nobody asks for it
  double mass;  // the same
};

// The weights of the thread's logits, but for the rest those that `take` says
// to be taken, of which it is asked once.
template <typename Take>
__device__ inline RowSums WeighRow(const TopRow& row, const unsigned* marks,
                                   float top, const Take& take) {
  constexpr double kScaleOfMass = 1.4426950408889634;  // log2(e)
  const Weighing of_rest = WeighingOf(top, row.scale);
  const Weighing of_mass = WeighingOf(top, kScaleOfMass);
  const bool has_rest = row.scale > 0.0, is_same = row.scale == kScaleOfMass;
  RowSums sums = {0.0, 0.0};
  ForEachQuad<2>(row, [&](int, int token, const Quad& quad) {
    const Quad x = Counted(row, marks, token, quad);
    bool is_taken[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) is_taken[i] = take(token + i, x.of[i]);
    Quad weights = {};
    if (has_rest) {
      weights = Weigh(x, of_rest);
      Quad others = weights;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (is_taken[i]) others.of[i] = 0.0f;
      }
      sums.rest += static_cast<double>(SumOf(others));
    }
    if (row.wants_mass) {
      if (!is_same) weights = Weigh(x, of_mass);
      sums.mass += static_cast<double>(SumOf(weights));
    }
  });
  return sums;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_TOP_ROWS_WEIGHTS_H_
