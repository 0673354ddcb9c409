// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/next_kernel.h"
#include "core/kernels/cuda/norm.h"
#include "core/kernels/cuda/numbers.h"

namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

__device__ inline float SquareSum(float4 v, float shift, float sum) {
  const float x = __fadd_rn(v.x, -shift), y = __fadd_rn(v.y, -shift);
  const float z = __fadd_rn(v.z, -shift), w = __fadd_rn(v.w, -shift);
  sum = __fmaf_rn(x, x, sum);
  sum = __fmaf_rn(y, y, sum);
  sum = __fmaf_rn(z, z, sum);
  return __fmaf_rn(w, w, sum);
}

__device__ inline float Scaled(float x, float mean, float scale, float weight,
                               float bias) {
  return __fmaf_rn(__fmul_rn(__fadd_rn(x, -mean), scale), weight, bias);
}

// One block a row; thread i takes every kThreads-th four elements from the
// i-th, and goes over them again for the variance and for the result: they are
// in the first-level cache by then.
template <typename T, bool kIsLayerNorm>
__global__ void __launch_bounds__(kThreads) NormKernel(NormArgs args) {
  OUTRIDER_SHARED(float[kWarps], mean_sums);
  OUTRIDER_SHARED(float[kWarps], square_sums);
  LetNextKernelBegin(static_cast<int>(gridDim.x));
  AwaitPreviousKernel();
  const int out_row = static_cast<int>(blockIdx.x);
  const int row = args.rows == nullptr ? out_row : args.rows[out_row];
  const int fours = args.size / 4;
  const int first = static_cast<int>(threadIdx.x);
  const auto* x = reinterpret_cast<const float4*>(
      args.x + static_cast<size_t>(row) * args.size);
  const float size = static_cast<float>(args.size);

  float mean = 0.0f;
  if (kIsLayerNorm) {
    float sum = 0.0f;
    for (int i = first; i < fours; i += kThreads) {
      const float4 v = x[i];
      sum = __fadd_rn(sum, __fadd_rn(__fadd_rn(v.x, v.y), __fadd_rn(v.z, v.w)));
    }
    mean = BlockSum(sum, mean_sums) / size;
  }
  float squares = 0.0f;
  for (int i = first; i < fours; i += kThreads) {
    squares = SquareSum(x[i], mean, squares);
  }
  squares = BlockSum(squares, square_sums);
  const float scale = 1.0f / sqrtf(squares / size + args.epsilon);

  const auto* weights = reinterpret_cast<const float4*>(args.weight);
  const auto* biases = reinterpret_cast<const float4*>(args.bias);
  auto* y = reinterpret_cast<uint2*>(static_cast<T*>(args.y) +
                                     static_cast<size_t>(out_row) * args.size);
  for (int i = first; i < fours; i += kThreads) {
    const float4 v = x[i], w = weights[i];
    const float4 b =
        biases == nullptr ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : biases[i];
    y[i] = make_uint2(PackPair<T>(Scaled(v.x, mean, scale, w.x, b.x),
                                  Scaled(v.y, mean, scale, w.y, b.y)),
                      PackPair<T>(Scaled(v.z, mean, scale, w.z, b.z),
                                  Scaled(v.w, mean, scale, w.w, b.w)));
  }
}

template <bool kIsLayerNorm>
void Run(const NormArgs& args, Stream stream) {
  LaunchEarly(args.num_rows, kThreads, 0, stream,
              args.element == Element::kBFloat16
                  ? NormKernel<Bf16, kIsLayerNorm>
                  : NormKernel<Half, kIsLayerNorm>,
              args);
}

}  // namespace

void RmsNorm(const NormArgs& args, Stream stream) {
  Run</*kIsLayerNorm=*/false>(args, stream);
}

void LayerNorm(const NormArgs& args, Stream stream) {
  Run</*kIsLayerNorm=*/true>(args, stream);
}

}  // namespace outrider::kernels::cuda
