// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/linear.h"
#include "core/kernels/cuda/mma.h"

// A decoding step is bound by reading the weights, once each. So the weights
// are the 16-row operand and the tokens come in eights: idle columns of the
// tensor cores cost nothing, and the products of 1 to 8 tokens take the time
// of one. Weights go from memory to registers, each exactly once, in whole
// lines (packed_weight.h); shared memory and cp.async would only be a detour,
// as no two warps need the same weights.
namespace outrider::kernels::cuda {
namespace {

// A slice of k is what one warp of a block sums: chunks of kTileIn inputs, the
// slice's own number first and then every kSlices-th.
constexpr int kSlices = 8;
constexpr int kThreads = kSlices * kWarpSize;
constexpr int kTileRows = 8;                       // tokens of an mma
constexpr float kGeluScale = 0.7978845608028654f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

// Two operands A, those of one tile, as a lane holds them.
struct Weights {
  FragmentA operand[2];
};

// The weights pass through once: they leave the first-level cache to the
// tokens, which every block reads.
__device__ inline FragmentA LoadOperand(const uint4* from) {
  FragmentA a;
#ifdef __CUDA_ARCH__
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(a.a[0]), "=r"(a.a[1]), "=r"(a.a[2]), "=r"(a.a[3])
               : "l"(from));
#else
  const uint4 words = *from;
  a = {{words.x, words.y, words.z, words.w}};
#endif
  return a;
}

// Eight inputs of a token: the same lane's share of both operands B.
struct Inputs {
  FragmentB operand[2];
};

__device__ inline Inputs LoadInputs(const LinearArgs& args, int row, int k) {
  uint4 words = make_uint4(0, 0, 0, 0);
  if (row < args.num_rows && k < args.weight.in) {
    words = __ldg(reinterpret_cast<const uint4*>(
        static_cast<const uint16_t*>(args.x) +
        static_cast<size_t>(row) * args.weight.in + k));
  }
  return {{{{words.x, words.y}}, {{words.z, words.w}}}};
}

__device__ inline float Silu(float x) { return x / (1.0f + expf(-x)); }

__device__ inline float Gelu(float x) {
  const float cubic = __fmul_rn(kGeluCubic, __fmul_rn(x, __fmul_rn(x, x)));
  const float inner = __fmul_rn(kGeluScale, __fadd_rn(x, cubic));
  return __fmul_rn(__fmul_rn(0.5f, x), __fadd_rn(1.0f, tanhf(inner)));
}

template <typename T>
__device__ void StoreSum(const LinearArgs& args, int row, int output,
                         float sum) {
  if (row >= args.num_rows || output >= args.weight.out) return;
  if (args.bias != nullptr) sum = __fadd_rn(sum, args.bias[output]);
  const size_t place = static_cast<size_t>(row) * args.weight.out + output;
  switch (args.epilogue) {
    case Epilogue::kStore:
      static_cast<float*>(args.y)[place] = sum;
      break;
    case Epilogue::kAdd: {
      float* y = static_cast<float*>(args.y) + place;
      *y = __fadd_rn(*y, sum);
      break;
    }
    case Epilogue::kGelu:
      static_cast<T*>(args.y)[place] = FromFloat<T>(Gelu(sum));
      break;
    case Epilogue::kSiluMul:
      break;
  }
}

template <typename T>
__device__ void StoreSiluMul(const LinearArgs& args, int row, int output,
                             float gate, float up) {
  const int size = args.weight.out / 2;
  if (row >= args.num_rows || output >= size) return;
  if (args.bias != nullptr) {
    gate = __fadd_rn(gate, args.bias[output]);
    up = __fadd_rn(up, args.bias[size + output]);
  }
  static_cast<T*>(args.y)[static_cast<size_t>(row) * size + output] =
      FromFloat<T>(__fmul_rn(Silu(gate), up));
}

// Sums of one lane: outputs g and g + 8 of a tile for tokens `row`, `row` + 1.
template <typename T>
__device__ void Store(const LinearArgs& args, int tile, int row, int g,
                      float4 sum) {
  if (args.epilogue == Epilogue::kSiluMul) {
    StoreSiluMul<T>(args, row, tile * 8 + g, sum.x, sum.z);
    StoreSiluMul<T>(args, row + 1, tile * 8 + g, sum.y, sum.w);
    return;
  }
  const int output = tile * kTileOut + g;
  StoreSum<T>(args, row, output, sum.x);
  StoreSum<T>(args, row + 1, output, sum.y);
  StoreSum<T>(args, row, output + 8, sum.z);
  StoreSum<T>(args, row + 1, output + 8, sum.w);
}

// The warp's slice of k, for kOutTiles tiles of outputs and kRowTiles of
// tokens. Weights are loaded kAhead chunks before they are needed.
template <typename T, int kOutTiles, int kRowTiles>
__device__ void SumSlice(const LinearArgs& args, int first_tile, int first_row,
                         FragmentD (&sums)[kOutTiles][kRowTiles]) {
  constexpr int kAhead = 4 / kOutTiles;
  const int slice = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int g = lane / 4, t = lane % 4;
  const int num_chunks = (args.weight.in + kTileIn - 1) / kTileIn;
  const int num_tiles = (args.weight.out + kTileOut - 1) / kTileOut;
  const auto* tiles = static_cast<const uint4*>(args.weight.tiles);

  const auto load = [&](int chunk, int o) {
    Weights weights = {};
    if (chunk >= num_chunks || first_tile + o >= num_tiles) return weights;
    const uint4* from =
        tiles + (static_cast<size_t>(first_tile + o) * num_chunks + chunk) *
                    (2 * kWarpSize);
    weights.operand[0] = LoadOperand(from + lane);
    weights.operand[1] = LoadOperand(from + kWarpSize + lane);
    return weights;
  };

  Weights ahead[kAhead][kOutTiles];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
#pragma unroll
    for (int o = 0; o < kOutTiles; ++o) {
      ahead[i][o] = load(slice + i * kSlices, o);
    }
  }
  for (int chunk = slice; chunk < num_chunks; chunk += kAhead * kSlices) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int current = chunk + i * kSlices;
      if (current >= num_chunks) break;  // the same for the whole warp
      Weights weights[kOutTiles];
#pragma unroll
      for (int o = 0; o < kOutTiles; ++o) {
        weights[o] = ahead[i][o];
        ahead[i][o] = load(current + kAhead * kSlices, o);
      }
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        const Inputs inputs = LoadInputs(args, first_row + r * kTileRows + g,
                                         current * kTileIn + 8 * t);
#pragma unroll
        for (int o = 0; o < kOutTiles; ++o) {
          Mma<T>(sums[o][r], weights[o].operand[0], inputs.operand[0]);
          Mma<T>(sums[o][r], weights[o].operand[1], inputs.operand[1]);
        }
      }
    }
  }
}

// Block (x, y): the x-th kRowTiles * 8 tokens, the y-th kOutTiles * 16 outputs.
// Neighbours in x read the same weights at about the same time: long passes
// take them from the second-level cache.
template <typename T, int kOutTiles, int kRowTiles>
__global__ void __launch_bounds__(kThreads) LinearKernel(LinearArgs args) {
  OUTRIDER_DYNAMIC_SHARED(float4, slices);  // [kSlices][kRowTiles][kWarpSize]
  const int first_row = static_cast<int>(blockIdx.x) * kRowTiles * kTileRows;
  const int first_tile = static_cast<int>(blockIdx.y) * kOutTiles;
  FragmentD sums[kOutTiles][kRowTiles] = {};
  SumSlice<T>(args, first_tile, first_row, sums);

  constexpr int kFragments = kRowTiles * kWarpSize;
  const int thread = static_cast<int>(threadIdx.x);
  const int slice = thread / kWarpSize, lane = thread % kWarpSize;
#pragma unroll
  for (int o = 0; o < kOutTiles; ++o) {
    // 16 consecutive bytes a lane: no two lanes of a quarter warp, which go
    // to the banks together, meet in one.
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      const FragmentD& sum = sums[o][r];
      slices[slice * kFragments + r * kWarpSize + lane] =
          make_float4(sum.d[0], sum.d[1], sum.d[2], sum.d[3]);
    }
    __syncthreads();
    for (int i = thread; i < kFragments; i += kThreads) {
      float4 sum = slices[i];
      for (int s = 1; s < kSlices; ++s) {
        const float4 next = slices[s * kFragments + i];
        sum = make_float4(__fadd_rn(sum.x, next.x), __fadd_rn(sum.y, next.y),
                          __fadd_rn(sum.z, next.z), __fadd_rn(sum.w, next.w));
      }
      const int row = first_row + i / kWarpSize * kTileRows + i % 4 * 2;
      Store<T>(args, first_tile + o, row, i % kWarpSize / 4, sum);
    }
    __syncthreads();  // before the next tiles' sums
  }
}

template <typename T, int kOutTiles, int kRowTiles>
void Run(const LinearArgs& args, Stream stream) {
  const dim3 blocks(CeilDiv(args.num_rows, kRowTiles * kTileRows),
                    CeilDiv(args.weight.out, kOutTiles * kTileOut));
  const size_t bytes = sizeof(float4) * kSlices * kRowTiles * kWarpSize;
  Launch(blocks, kThreads, bytes, stream, LinearKernel<T, kOutTiles, kRowTiles>,
         args);
}

// How many tiles a block takes changes how often tokens are read, and never
// the order of a sum.
template <typename T>
void RunRows(const LinearArgs& args, Stream stream) {
  if (args.num_rows <= 8) return Run<T, 1, 1>(args, stream);
  if (args.num_rows <= 16) return Run<T, 1, 2>(args, stream);
  if (args.num_rows <= 32) return Run<T, 1, 4>(args, stream);
  return Run<T, 2, 8>(args, stream);
}

}  // namespace

void Linear(const LinearArgs& args, Stream stream) {
  if (args.weight.element == Element::kBFloat16) {
    RunRows<Bf16>(args, stream);
  } else {
    RunRows<Half>(args, stream);
  }
}

}  // namespace outrider::kernels::cuda
