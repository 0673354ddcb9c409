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
inline constexpr size_t kPrefetchFloats = 4096;

// How a step along k multiplies: x is prepared once for each call, as
// [num_rows][num_steps] of X; a step of weights is 4 bytes for each output.

// float32: a step is one k.
template <class V>
struct MultiplyFloat32 {
  using Vector = V;
  static constexpr int kMaxRows = V::kLinearRows;
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
  // Weights in two halves leave fewer registers for sums.
  static constexpr int kMaxRows = V::kLinearRows > 7 ? 7 : V::kLinearRows;
  struct X {
    float even;
    float odd;
  };
  struct Weights {
    typename V::Float even;
    typename V::Float odd;
  };
  using Factor = Weights;

  static OUTRIDER_KERNEL_INLINE int NumSteps(int in) {
    return PackedLayout::BFloat16Steps(in);
  }
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
    for (k = in; k < 2 * NumSteps(in); ++k) flat[k] = 0.0f;
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

// kRows rows of x by kVectors vectors of outputs: the sums stay in registers,
// each one a chain over k, so that none knows of its neighbours. `weight`
// points at the first of these vectors, whose outputs begin at `first_output`,
// and moves by `step_stride` from one step to the next.
template <class M, int kRows, int kVectors, bool kPrefetch>
void LinearTile(const LinearTask& task, const float* weight, int step_stride,
                const typename M::X* x, int first_output, float* y) {
  using V = typename M::Vector;
  const int num_steps = M::NumSteps(task.in);

  typename V::Float sums[kRows][kVectors];
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) sums[m][v] = V::Zero();
  }
  for (int step = 0; step < num_steps; ++step) {
    typename M::Weights w[kVectors];
    for (int v = 0; v < kVectors; ++v) w[v] = M::Load(weight + v * V::kWidth);
    if constexpr (kPrefetch) {
      for (int i = 0; i < kVectors * V::kWidth; i += PackedLayout::kBlock) {
        __builtin_prefetch(weight + kPrefetchFloats + i);
      }
    }
    weight += step_stride;
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
    for (int m = 0; m < kRows; ++m) {
      float* place = y + static_cast<size_t>(m) * task.out + output;
      typename V::Float sum = sums[m][v];
      if (task.bias != nullptr) sum = sum + V::LoadFirst(task.bias + output, n);
      if (task.add) sum = sum + V::LoadFirst(place, n);
      V::StoreFirst(place, sum, n);
    }
  }
}

// A group of kBlocks blocks of outputs for as many rows as `num_rows` says, in
// [1, kRows]; with few registers, a part of the group at a time.
template <class M, int kBlocks, bool kPrefetch, int kRows = M::kMaxRows>
void LinearGroup(int num_rows, const LinearTask& task, const float* weight,
                 const typename M::X* x, int first_output, float* y) {
  if constexpr (kRows > 1) {
    if (num_rows < kRows) {
      return LinearGroup<M, kBlocks, kPrefetch, kRows - 1>(
          num_rows, task, weight, x, first_output, y);
    }
  }
  using V = typename M::Vector;
  constexpr int kOutputs = kBlocks * PackedLayout::kBlock;
  constexpr int kAllVectors = kOutputs / V::kWidth;
  constexpr int kVectors = V::LinearVectors(kRows) < kAllVectors
                               ? V::LinearVectors(kRows)
                               : kAllVectors;
  static_assert(kAllVectors % kVectors == 0);
  for (int i = 0; i < kOutputs; i += kVectors * V::kWidth) {
    LinearTile<M, kRows, kVectors, kPrefetch>(task, weight + i, kOutputs, x,
                                              first_output + i, y);
  }
}

// All rows over a group: it is read from memory once and stays in the cache.
template <class M, int kBlocks>
void LinearRows(const LinearTask& task, const float* weight, int first_output) {
  const auto* x = reinterpret_cast<const typename M::X*>(task.scratch);
  const int num_tiles = (task.num_rows + M::kMaxRows - 1) / M::kMaxRows;
  int row = 0;
  for (int tile = 0; tile < num_tiles; ++tile) {
    // Tiles of equal size, give or take one.
    const int end = task.num_rows * (tile + 1) / num_tiles;
    const auto* rows = x + row * M::NumSteps(task.in);
    float* y = task.y + static_cast<size_t>(row) * task.out;
    if (tile == 0) {
      LinearGroup<M, kBlocks, true>(end - row, task, weight, rows, first_output,
                                    y);
    } else {
      LinearGroup<M, kBlocks, false>(end - row, task, weight, rows,
                                     first_output, y);
    }
    row = end;
  }
}

template <class M>
void PrepareRows(const LinearTask& task, int first_row, int end_row) {
  auto* x = reinterpret_cast<typename M::X*>(task.scratch);
  for (int m = first_row; m < end_row; ++m) {
    M::Prepare(task.x + static_cast<size_t>(m) * task.in, task.in,
               x + m * M::NumSteps(task.in));
  }
}

// Calls body(size, first output, weights) for these groups of outputs.
template <class Body>
OUTRIDER_KERNEL_INLINE void ForEachGroup(const LinearTask& task, int num_steps,
                                         int first_group, int end_group,
                                         const Body& body) {
  const PackedLayout layout = PackedLayout::Of(task.out);
  const float* weight = static_cast<const float*>(task.weight);
  for (int group = first_group; group < end_group; ++group) {
    const int first_output = layout.FirstBlock(group) * PackedLayout::kBlock;
    body(layout.GroupSize(group), first_output,
         weight + static_cast<size_t>(num_steps) * first_output);
  }
}

template <class M>
void MultiplyGroups(const LinearTask& task, int first_group, int end_group) {
  ForEachGroup(task, M::NumSteps(task.in), first_group, end_group,
               [&](int size, int first_output, const float* weight) {
                 if (size == 3) LinearRows<M, 3>(task, weight, first_output);
                 if (size == 2) LinearRows<M, 2>(task, weight, first_output);
                 if (size == 1) LinearRows<M, 1>(task, weight, first_output);
               });
}

template <class M>
inline constexpr LinearKernel kLinearKernel = {.prepare = PrepareRows<M>,
                                               .multiply = MultiplyGroups<M>};

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_LINEAR_IMPL_H_
