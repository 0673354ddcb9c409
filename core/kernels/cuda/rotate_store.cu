// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/next_kernel.h"
#include "core/kernels/cuda/numbers.h"
#include "core/kernels/cuda/rotate_store.h"

namespace outrider::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kMaxHeadDim = 128;
// Pairs (element i, element i + head_dim / 2) that a lane holds: lane,
// lane + 32.
constexpr int kPairs = kMaxHeadDim / 2 / kWarpSize;

// A head, as the lanes of a warp hold it; past its end zeros.
struct HeadPart {
  float low[kPairs];
  float high[kPairs];
};

__device__ inline HeadPart LoadHead(const float* from, int half, int lane) {
  HeadPart head = {};
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int at = lane + i * kWarpSize;
    if (at >= half) continue;
    head.low[i] = from[at];
    head.high[i] = from[at + half];
  }
  return head;
}

__device__ inline void Normalize(HeadPart& head, const float* weight,
                                 float epsilon, int half, int lane) {
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    squares = __fmaf_rn(head.low[i], head.low[i], squares);
    squares = __fmaf_rn(head.high[i], head.high[i], squares);
  }
  squares = WarpSum(squares);
  const float mean = squares / static_cast<float>(2 * half);
  const float scale = 1.0f / sqrtf(mean + epsilon);
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int at = lane + i * kWarpSize;
    if (at >= half) continue;
    head.low[i] = __fmul_rn(__fmul_rn(head.low[i], scale), weight[at]);
    head.high[i] = __fmul_rn(__fmul_rn(head.high[i], scale), weight[at + half]);
  }
}

__device__ inline void Rotate(HeadPart& head, const float* cos,
                              const float* sin, int half, int lane) {
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int at = lane + i * kWarpSize;
    if (at >= half) continue;
    const float low = head.low[i], high = head.high[i];
    head.low[i] = __fmaf_rn(low, cos[at], -__fmul_rn(high, sin[at]));
    head.high[i] = __fmaf_rn(high, cos[at], __fmul_rn(low, sin[at]));
  }
}

template <typename T>
__device__ void StoreHead(const HeadPart& head, T* to, int half, int lane) {
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int at = lane + i * kWarpSize;
    if (at >= half) continue;
    to[at] = FromFloat<T>(head.low[i]);
    to[at + half] = FromFloat<T>(head.high[i]);
  }
}

// Whether a lane of the warp holds what is not finite once rounded to T (a
// float16 ends at 65504). If so, all that is such becomes 0.
template <typename T>
__device__ bool TakeNonFinite(HeadPart& head) {
  float count = 0.0f;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    if (!IsFinite(ToFloat(FromFloat<T>(head.low[i])))) {
      head.low[i] = 0.0f;
      count = 1.0f;
    }
    if (!IsFinite(ToFloat(FromFloat<T>(head.high[i])))) {
      head.high[i] = 0.0f;
      count = 1.0f;
    }
  }
  return WarpSum(count) > 0.0f;
}

// Normalised where `norm` is not null, turned where there are angles.
__device__ inline HeadPart LoadTurned(const RotateStoreArgs& args,
                                      const float* from, const float* norm,
                                      int position, int lane) {
  const int half = args.heads.head_dim / 2;
  HeadPart head = LoadHead(from, half, lane);
  if (norm != nullptr) Normalize(head, norm, args.epsilon, half, lane);
  if (args.cos != nullptr) {
    const size_t angles = static_cast<size_t>(position) * half;
    Rotate(head, args.cos + angles, args.sin + angles, half, lane);
  }
  return head;
}

// Block (x, y): row x, heads y * kWarps and on, one a warp: all query heads,
// then the key heads, each with its values.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    RotateStoreKernel(RotateStoreArgs args) {
  AwaitPreviousKernel();
  LetNextKernelBegin(static_cast<int>(gridDim.x));
  const Heads& heads = args.heads;
  const int row = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int head = static_cast<int>(blockIdx.y) * kWarps +
                   static_cast<int>(threadIdx.x) / kWarpSize;
  if (head >= heads.num_heads + heads.num_kv_heads) return;  // the whole warp
  const int dim = heads.head_dim, half = dim / 2;
  const int position = args.positions[row];
  const float* from =
      args.qkv +
      (static_cast<size_t>(row) * (heads.num_heads + 2 * heads.num_kv_heads) +
       head) *
          dim;
  if (head < heads.num_heads) {
    const HeadPart query =
        LoadTurned(args, from, args.query_norm, position, lane);
    T* to = static_cast<T*>(args.queries) +
            (static_cast<size_t>(row) * heads.num_heads + head) * dim;
    StoreHead(query, to, half, lane);
    return;
  }
  HeadPart key = LoadTurned(args, from, args.key_norm, position, lane);
  HeadPart value = LoadHead(
      from + static_cast<size_t>(heads.num_kv_heads) * dim, half, lane);
  if (TakeNonFinite<T>(value)) {
    for (int i = 0; i < kPairs; ++i) {
      key.low[i] = key.high[i] = __uint_as_float(0x7FC00000u);
    }
  }
  const size_t place =
      ((static_cast<size_t>(args.blocks[row]) * heads.num_kv_heads + head -
        heads.num_heads) *
           kBlockLength +
       position % kBlockLength) *
      dim;
  StoreHead(key, static_cast<T*>(args.kv.keys) + place, half, lane);
  StoreHead(value, static_cast<T*>(args.kv.values) + place, half, lane);
}

}  // namespace

void RotateStore(const RotateStoreArgs& args, Stream stream) {
  const int num_heads = args.heads.num_heads + args.heads.num_kv_heads;
  const dim3 blocks(args.num_rows, CeilDiv(num_heads, kWarps));
  LaunchEarly(blocks, kThreads, 0, stream,
              args.element == Element::kBFloat16 ? RotateStoreKernel<Bf16>
                                                 : RotateStoreKernel<Half>,
              args);
}

}  // namespace outrider::kernels::cuda
