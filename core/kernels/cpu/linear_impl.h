// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CPU_LINEAR_IMPL_H_
#define OUTRIDER_CORE_KERNELS_CPU_LINEAR_IMPL_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/bfloat16.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels::cpu {

// The weights are one stream; the hardware's prefetcher stops at each page, so
// the stream is asked for well ahead. Measured on a Zen 5, five rows: 0.9 ms
// without, 0.8 at 4 KiB, 0.65 at 8, 0.6 at 16 (one row: 0.55 to 0.6
// throughout).
inline constexpr size_t kPrefetchBytes = 16384;

// How a step along k multiplies: x is prepared once for each call, as
// [num_rows][num_steps] of X; a step of weights is kGroupSize of 4 bytes.

// float32: a step is one k.
template <class V>
struct MultiplyFloat32 {
  using Vector = V;
  using X = float;
  using Weights = typename V::Float;
  using Factor = typename V::Float;

  static OUTRIDER_KERNEL_INLINE int NumSteps(int in) { return in; }
  static void Prepare(const float* x, int in, X* to) {
    for (int k = 0; k < in; ++k) to[k] = x[k];
  }
  static OUTRIDER_KERNEL_INLINE Weights Load(const float* w) {
    return V::Load(w);
  }
  static OUTRIDER_KERNEL_INLINE Factor Broadcast(const X* x) {
    return V::Set(*x);
  }
  static OUTRIDER_KERNEL_INLINE typename V::Float Step(typename V::Float sum,
                                                       Weights w, Factor x) {
    return V::MulAdd(w, x, sum);
  }
};

// bfloat16 where the CPU has no instruction for it: a step is two k, whose
// weights share 32 bits. Products of two bfloat16 are exact in float32.
template <class V>
struct MultiplyBFloat16 {
  using Vector = V;
  struct X {
    float even;
    float odd;
  };
  struct Weights {
    typename V::Float even;
    typename V::Float odd;
  };
  using Factor = Weights;

  static OUTRIDER_KERNEL_INLINE int NumSteps(int in) { return (in + 1) / 2; }
  static void Prepare(const float* x, int in, X* to) {
    float* flat = &to->even;
    int k = 0;
    for (; k + V::kWidth <= in; k += V::kWidth) {
      V::Store(flat + k, V::RoundToBFloat16(V::Load(x + k)));
    }
    if (k < in) {
      V::StoreFirst(flat + k, V::RoundToBFloat16(V::LoadFirst(x + k, in - k)),
                    in - k);
    }
    if (in % 2 != 0) flat[in] = 0.0f;
  }
  static OUTRIDER_KERNEL_INLINE Weights Load(const float* w) {
    const typename V::Float pairs = V::Load(w);
    return {V::EvenBFloat16(pairs), V::OddBFloat16(pairs)};
  }
  static OUTRIDER_KERNEL_INLINE Factor Broadcast(const X* x) {
    return {V::Set(x->even), V::Set(x->odd)};
  }
  static OUTRIDER_KERNEL_INLINE typename V::Float Step(typename V::Float sum,
                                                       const Weights& w,
                                                       const Factor& x) {
    return V::MulAdd(w.odd, x.odd, V::MulAdd(w.even, x.even, sum));
  }
};

// kRows rows of x by kLinearVectors vectors of outputs: the sums stay in
// registers, each one a chain over k, so that none knows of its neighbours.
// `y` and `bias` point at the first of `num_outputs` outputs.
template <class M, int kRows, bool kPrefetch>
void LinearTile(const LinearTask& task, const float* weight,
                const typename M::X* x, int first_output, float* y) {
  using V = typename M::Vector;
  constexpr int kVectors = V::kLinearVectors;
  const int num_steps = M::NumSteps(task.in);

  typename V::Float sums[kRows][kVectors];
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) sums[m][v] = V::Zero();
  }
  for (int step = 0; step < num_steps; ++step) {
    typename M::Weights w[kVectors];
    for (int v = 0; v < kVectors; ++v) w[v] = M::Load(weight + v * V::kWidth);
    if constexpr (kPrefetch) {
      constexpr int kBytes = kVectors * V::kWidth * 4;
      const char* ahead = reinterpret_cast<const char*>(weight);
      for (int byte = 0; byte < kBytes; byte += 64) {
        __builtin_prefetch(ahead + kPrefetchBytes + byte);
      }
    }
    weight += kGroupSize;
    for (int m = 0; m < kRows; ++m) {
      const typename M::Factor factor = M::Broadcast(x + m * num_steps + step);
      for (int v = 0; v < kVectors; ++v) {
        sums[m][v] = M::Step(sums[m][v], w[v], factor);
      }
    }
  }

  for (int v = 0; v < kVectors; ++v) {
    const int output = first_output + v * V::kWidth;
    if (output >= task.out) return;
    const int left = task.out - output;
    const int n = left < V::kWidth ? left : V::kWidth;
    const typename V::Float bias =
        task.bias != nullptr ? V::LoadFirst(task.bias + output, n) : V::Zero();
    for (int m = 0; m < kRows; ++m) {
      float* place = y + static_cast<size_t>(m) * task.out + output;
      typename V::Float sum = sums[m][v];
      if (task.bias != nullptr) sum = sum + bias;
      if (task.add) sum = sum + V::LoadFirst(place, n);
      V::StoreFirst(place, sum, n);
    }
  }
}

// LinearTile with as many rows as `num_rows` says, in [1, kRows].
template <class M, bool kPrefetch, int kRows = M::Vector::kLinearRows>
OUTRIDER_KERNEL_INLINE void LinearTileOf(int num_rows, const LinearTask& task,
                                         const float* weight,
                                         const typename M::X* x,
                                         int first_output, float* y) {
  if constexpr (kRows > 1) {
    if (num_rows < kRows) {
      LinearTileOf<M, kPrefetch, kRows - 1>(num_rows, task, weight, x,
                                            first_output, y);
      return;
    }
  }
  LinearTile<M, kRows, kPrefetch>(task, weight, x, first_output, y);
}

// Outputs outside, rows inside: a group of weights is read from memory once and
// stays in the cache for all rows.
template <class M>
void Linear(const LinearTask& task) {
  using V = typename M::Vector;
  const int num_steps = M::NumSteps(task.in);
  auto* x = reinterpret_cast<typename M::X*>(task.scratch);
  for (int m = 0; m < task.num_rows; ++m) {
    M::Prepare(task.x + static_cast<size_t>(m) * task.in, task.in,
               x + m * num_steps);
  }

  const int num_blocks = (task.num_rows + V::kLinearRows - 1) / V::kLinearRows;
  constexpr int kTileOutputs = V::kLinearVectors * V::kWidth;
  const float* group = static_cast<const float*>(task.weight);
  for (int output = 0; output < task.out; output += kGroupSize) {
    for (int part = 0; part < kGroupSize; part += kTileOutputs) {
      int row = 0;
      for (int block = 0; block < num_blocks; ++block) {
        // Blocks of equal size, give or take one.
        const int end = static_cast<int>(static_cast<int64_t>(task.num_rows) *
                                         (block + 1) / num_blocks);
        const auto* rows = x + row * num_steps;
        float* y = task.y + static_cast<size_t>(row) * task.out;
        if (block == 0) {
          LinearTileOf<M, true>(end - row, task, group + part, rows,
                                output + part, y);
        } else {
          LinearTileOf<M, false>(end - row, task, group + part, rows,
                                 output + part, y);
        }
        row = end;
      }
    }
    group += static_cast<size_t>(num_steps) * kGroupSize;
  }
}

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_LINEAR_IMPL_H_
