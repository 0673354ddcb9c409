// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_PARTS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_PARTS_H_

#include "core/kernels/cuda/attention.h"
#include "core/kernels/cuda/device.h"

// Parts of a softmax, for attention.cu: where they are kept and how they join.
namespace outrider::kernels::cuda {

constexpr float kNothing = -INFINITY;

// A part of a softmax with its weighted sum, for one query and some elements,
// joined with the part that follows it.
__device__ inline void Join(float& top, float& mass, float2 next, float& keep,
                            float& take) {
  // A part without keys changes nothing, not even a bit.
  if (next.y == 0.0f) {
    keep = 1.0f;
    take = 0.0f;
    return;
  }
  const float best = fmaxf(top, next.x);
  keep = exp2f(__fadd_rn(top, -best));
  take = exp2f(__fadd_rn(next.x, -best));
  top = best;
  mass = __fmaf_rn(mass, keep, __fmul_rn(next.y, take));
}

// Where the scratch memory has what a pair leaves of a head: sums as the lanes
// hold them, [kv_heads][num_pairs][kDim / 8][kWarpSize] float4, and behind all
// of these {top, mass} of each query, [kv_heads][num_pairs][kTileQueries].
template <int kDim>
struct Scratch {
  static constexpr int kFragments = kDim / 8 * kWarpSize;
  float4* sums;
  float2* softmax;

  __device__ Scratch(const AttentionArgs& args, int pair, int kv_head) {
    const size_t parts =
        static_cast<size_t>(args.num_pairs) * args.heads.num_kv_heads;
    const size_t first = static_cast<size_t>(kv_head) * args.num_pairs +
                         (pair - args.first_pair);
    auto* all = reinterpret_cast<float4*>(args.scratch);
    sums = all + first * kFragments;
    softmax = reinterpret_cast<float2*>(all + parts * kFragments) +
              first * kTileQueries;
  }
};

// Joins `count` parts of the lane's two queries, in order. parts(i) are its
// sums, [kWarpSize] of them each, softmaxes(i) those of all 16 queries.
struct Joined {
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
  float top[2] = {kNothing, kNothing};
  float mass[2] = {0.0f, 0.0f};
};
__device__ inline void JoinPart(Joined& all, float4 sum, float2 upper,
                                float2 lower) {
  float keep, take;
  Join(all.top[0], all.mass[0], upper, keep, take);
  all.sum.x = __fmaf_rn(all.sum.x, keep, __fmul_rn(sum.x, take));
  all.sum.y = __fmaf_rn(all.sum.y, keep, __fmul_rn(sum.y, take));
  Join(all.top[1], all.mass[1], lower, keep, take);
  all.sum.z = __fmaf_rn(all.sum.z, keep, __fmul_rn(sum.z, take));
  all.sum.w = __fmaf_rn(all.sum.w, keep, __fmul_rn(sum.w, take));
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_ATTENTION_PARTS_H_
