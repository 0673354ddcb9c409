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

// Tiles of rows that go over a group together.
inline constexpr int kBandTiles = 4;

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

// kRows rows of x by kVectors vectors of outputs, for some steps: the sums stay
// in registers, each one a chain over k, so that none knows of its neighbours.
// `weight` points at the first of these vectors and moves by kOutputs from one
// step to the next, `x` and `sums` at the first row.
template <class M, int kRows, int kVectors, int kOutputs, bool kPrefetch>
OUTRIDER_KERNEL_INLINE void LinearTile(int num_steps, const float* weight,
                                       const float* ahead,
                                       const typename M::X* x, int x_stride,
                                       typename M::Vector::Float* sums) {
  using V = typename M::Vector;
  constexpr int kSumStride = kOutputs / V::kWidth;
  typename V::Float chains[kRows][kVectors];
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      chains[m][v] = sums[m * kSumStride + v];
    }
  }
  for (int step = 0; step < num_steps; ++step) {
    typename M::Weights w[kVectors];
    for (int v = 0; v < kVectors; ++v) w[v] = M::Load(weight + v * V::kWidth);
    if constexpr (kPrefetch) {
      for (int i = 0; i < kVectors * V::kWidth; i += PackedLayout::kBlock) {
        __builtin_prefetch(ahead + i);
      }
      ahead += kVectors * V::kWidth;
    }
    weight += kOutputs;
    for (int m = 0; m < kRows; ++m) {
      const typename M::Factor factor = M::Broadcast(x + m * x_stride + step);
      for (int v = 0; v < kVectors; ++v) {
        chains[m][v] = M::Step(chains[m][v], w[v], factor);
      }
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      sums[m * kSumStride + v] = chains[m][v];
    }
  }
}

// How many vectors of a group of kOutputs outputs have their sums for so many
// rows in registers together.
template <class V, int kOutputs>
constexpr int VectorsAtOnce(int rows) {
  constexpr int kAll = kOutputs / V::kWidth;
  return V::LinearVectors(rows) < kAll ? V::LinearVectors(rows) : kAll;
}

// A group of outputs for as many rows as `num_rows` says, in [1, kRows]; with
// few registers, a part of the group at a time.
template <class M, int kOutputs, bool kPrefetch, int kRows = M::kMaxRows>
void LinearGroup(int num_rows, int num_steps, const float* weight,
                 const typename M::X* x, int x_stride,
                 typename M::Vector::Float* sums) {
  if constexpr (kRows > 1) {
    if (num_rows < kRows) {
      return LinearGroup<M, kOutputs, kPrefetch, kRows - 1>(
          num_rows, num_steps, weight, x, x_stride, sums);
    }
  }
  using V = typename M::Vector;
  constexpr int kVectors = VectorsAtOnce<V, kOutputs>(kRows);
  static_assert(kOutputs / V::kWidth % kVectors == 0);
  for (int v = 0; v < kOutputs / V::kWidth; v += kVectors) {
    LinearTile<M, kRows, kVectors, kOutputs, kPrefetch>(
        num_steps, weight + v * V::kWidth,
        weight + kPrefetchFloats + v * V::kWidth * num_steps, x, x_stride,
        sums + v);
  }
}

// Writes the sums of a group, [num_rows][kOutputs].
template <class V, int kOutputs>
void StoreSums(const LinearTask& task, int first_row, int num_rows,
               int first_output, const typename V::Float* sums) {
  for (int m = 0; m < num_rows; ++m) {
    for (int i = 0; i < kOutputs; i += V::kWidth, ++sums) {
      const int output = first_output + i;
      if (output >= task.out) continue;
      const int left = task.out - output;
      const int n = left < V::kWidth ? left : V::kWidth;
      float* place =
          task.y + static_cast<size_t>(first_row + m) * task.out + output;
      typename V::Float sum = *sums;
      if (task.bias != nullptr) sum = sum + V::LoadFirst(task.bias + output, n);
      if (task.add) sum = sum + V::LoadFirst(place, n);
      V::StoreFirst(place, sum, n);
    }
  }
}

// A few tiles of rows over a group, a stretch of steps after the other: while
// the cores multiply by one stretch, which stays in the first cache until all
// tiles and parts have used it, the next one comes from memory. Were each to go
// over the whole group, the first would wait for memory and the others leave it
// idle.
template <class M, int kOutputs, bool kPrefetch>
void LinearBand(const LinearTask& task, int first_row, int num_rows,
                const float* weight, int first_output) {
  using V = typename M::Vector;
  const int num_steps = M::NumSteps(task.in);
  const auto* x = reinterpret_cast<const typename M::X*>(task.scratch) +
                  static_cast<size_t>(first_row) * num_steps;
  const int num_tiles = (num_rows + M::kMaxRows - 1) / M::kMaxRows;
  const bool is_whole = num_tiles == 1 && VectorsAtOnce<V, kOutputs>(
                                              num_rows) == kOutputs / V::kWidth;
  const int stretch = is_whole ? num_steps : V::kStretchSteps;

  constexpr int kVectors = kOutputs / V::kWidth;
  typename V::Float sums[kBandTiles * M::kMaxRows * kVectors];
  for (int i = 0; i < num_rows * kVectors; ++i) sums[i] = V::Zero();
  for (int step = 0; step < num_steps; step += stretch) {
    const int n = num_steps - step < stretch ? num_steps - step : stretch;
    const float* first_weight = weight + static_cast<size_t>(step) * kOutputs;
    int row = 0;
    for (int tile = 0; tile < num_tiles; ++tile) {
      // Tiles of equal size, give or take one.
      const int end = num_rows * (tile + 1) / num_tiles;
      const auto* tile_x = x + row * num_steps + step;
      auto* tile_sums = sums + row * kVectors;
      if (tile == 0 && kPrefetch) {
        LinearGroup<M, kOutputs, true>(end - row, n, first_weight, tile_x,
                                       num_steps, tile_sums);
      } else {
        LinearGroup<M, kOutputs, false>(end - row, n, first_weight, tile_x,
                                        num_steps, tile_sums);
      }
      row = end;
    }
  }
  StoreSums<V, kOutputs>(task, first_row, num_rows, first_output, sums);
}

// All rows over a group: it is read from memory once and stays in the cache.
template <class M, int kBlocks>
void LinearRows(const LinearTask& task, const float* weight, int first_output) {
  constexpr int kOutputs = kBlocks * PackedLayout::kBlock;
  constexpr int kBandRows = kBandTiles * M::kMaxRows;
  const int num_bands = (task.num_rows + kBandRows - 1) / kBandRows;
  int row = 0;
  for (int band = 0; band < num_bands; ++band) {
    const int end = task.num_rows * (band + 1) / num_bands;
    if (band == 0) {
      LinearBand<M, kOutputs, true>(task, row, end - row, weight, first_output);
    } else {
      LinearBand<M, kOutputs, false>(task, row, end - row, weight,
                                     first_output);
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
