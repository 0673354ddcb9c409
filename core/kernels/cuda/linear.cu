// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/async_copy.h"
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/linear.h"
#include "core/kernels/cuda/mma.h"

// A decoding step is bound by reading the weights, once each. So the weights
// are the 16-row operand and the tokens come in eights: idle columns of the
// tensor cores cost nothing, and the products of 1 to 8 tokens take the time
// of one. Weights are read exactly once, in whole lines (packed_weight.h). What
// a warp reads waits in a ring of its own in shared memory, each lane's bytes
// where that lane itself takes them up: no barrier, and several chunks are
// always on their way.
namespace outrider::kernels::cuda {
namespace {

// A slice of k is what one warp of a block sums: chunks of kTileIn inputs, the
// slice's own number first and then every kSlices-th.
constexpr int kSlices = 8;
constexpr int kThreads = kSlices * kWarpSize;
constexpr int kTileRows = 8;                       // tokens of an mma
constexpr float kGeluScale = 0.7978845608028654f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

__device__ inline float Silu(float x) {
  return __fdiv_rn(x, __fadd_rn(1.0f, expf(-x)));
}

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

// The shared memory of a block: for each warp a ring of chunks of k. A chunk is
// both operands A of each tile of outputs and, for each tile of tokens, eight
// inputs of a token for each lane, its share of both operands B.
template <int kOutTiles, int kRowTiles>
struct Ring {
  static constexpr int kChunk = (2 * kOutTiles + kRowTiles) * kWarpSize;
  // Three blocks have room on an SM of sm_90, two on one of sm_80; the least
  // that is ahead fits where a block has 99 KiB (sm_86).
  static constexpr size_t kMostBytes = 72 << 10;
  static constexpr size_t kChunkBytes = sizeof(uint4) * kChunk * kSlices;
  static constexpr int kLength =
      kMostBytes / kChunkBytes < 2 ? 2 : kMostBytes / kChunkBytes;
  static constexpr int kOfWarp = kLength * kChunk;
  static constexpr size_t kBytes = kLength * kChunkBytes;
};

__device__ inline FragmentA OperandOf(uint4 words) {
  return {{words.x, words.y, words.z, words.w}};
}

// The warp's slice of k, for kOutTiles tiles of outputs and kRowTiles of
// tokens. `ring` is the lane's own place in the warp's.
template <typename T, int kOutTiles, int kRowTiles>
__device__ void SumSlice(const LinearArgs& args, int first_tile, int first_row,
                         uint4* ring, FragmentD (&sums)[kOutTiles][kRowTiles]) {
  using Mine = Ring<kOutTiles, kRowTiles>;
  const int slice = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int num_chunks = (args.weight.in + kTileIn - 1) / kTileIn;
  const int num_tiles = (args.weight.out + kTileOut - 1) / kTileOut;

  // What is beyond the last tile and the last token is not stored: it may be
  // anything, so the last ones are read again.
  const uint4* weights[kOutTiles];
#pragma unroll
  for (int o = 0; o < kOutTiles; ++o) {
    const int tile = min(first_tile + o, num_tiles - 1);
    weights[o] = static_cast<const uint4*>(args.weight.tiles) +
                 static_cast<size_t>(tile) * num_chunks * (2 * kWarpSize) +
                 lane;
  }
  unsigned inputs[kRowTiles];  // in eights: fewer registers than an address
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
    const int row =
        min(first_row + r * kTileRows + lane / 4, args.num_rows - 1);
    inputs[r] = static_cast<unsigned>(row) * (args.weight.in / 8) + lane % 4;
  }
  const auto ask = [&](int place, int chunk) {
    uint4* to = ring + place * Mine::kChunk;
    if (chunk < num_chunks) {
#pragma unroll
      for (int o = 0; o < kOutTiles; ++o) {
        const uint4* from = weights[o] + chunk * (2 * kWarpSize);
        CopyAsync<Reuse::kNone>(to + 2 * o * kWarpSize, from);
        CopyAsync<Reuse::kNone>(to + (2 * o + 1) * kWarpSize, from + kWarpSize);
      }
      const bool is_inside = chunk * kTileIn + lane % 4 * 8 < args.weight.in;
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        CopyAsync<Reuse::kByOtherBlocks>(to + (2 * kOutTiles + r) * kWarpSize,
                                         static_cast<const uint4*>(args.x) +
                                             inputs[r] + chunk * (kTileIn / 8),
                                         is_inside);
      }
    }
    EndCopyGroup();  // an empty one too: groups are counted
  };

#pragma unroll
  for (int i = 0; i < Mine::kLength; ++i) ask(i, slice + i * kSlices);
  int place = 0;
#pragma unroll 1
  for (int chunk = slice; chunk < num_chunks; chunk += kSlices) {
    WaitForCopies<Mine::kLength - 1>();
    const uint4* now = ring + place * Mine::kChunk;
    FragmentA operands[kOutTiles][2];
#pragma unroll
    for (int o = 0; o < kOutTiles; ++o) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        operands[o][h] = OperandOf(now[(2 * o + h) * kWarpSize]);
      }
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      const uint4 x = now[(2 * kOutTiles + r) * kWarpSize];
#pragma unroll
      for (int o = 0; o < kOutTiles; ++o) {
        Mma<T>(sums[o][r], operands[o][0], {{x.x, x.y}});
        Mma<T>(sums[o][r], operands[o][1], {{x.z, x.w}});
      }
    }
    ask(place, chunk + Mine::kLength * kSlices);
    place = place + 1 == Mine::kLength ? 0 : place + 1;
  }
}

// Block (x, y): the x-th kRowTiles * 8 tokens, the y-th kOutTiles * 16 outputs.
// Neighbours in x read the same weights at about the same time: long passes
// take them from the second-level cache.
template <typename T, int kOutTiles, int kRowTiles>
__global__ void __launch_bounds__(kThreads, kRowTiles < 8 ? 3 : 1)
    LinearKernel(LinearArgs args) {
  using Mine = Ring<kOutTiles, kRowTiles>;
  OUTRIDER_DYNAMIC_SHARED(uint4, rings);  // [kSlices][Mine::kOfWarp]
  const int first_row = static_cast<int>(blockIdx.x) * kRowTiles * kTileRows;
  const int first_tile = static_cast<int>(blockIdx.y) * kOutTiles;
  const int thread = static_cast<int>(threadIdx.x);
  // The warp's sums go where its ring was: what it asked for has come.
  uint4* const mine =
      rings + thread / kWarpSize * Mine::kOfWarp + thread % kWarpSize;
  FragmentD sums[kOutTiles][kRowTiles] = {};
  SumSlice<T>(args, first_tile, first_row, mine, sums);

  constexpr int kFragments = kRowTiles * kWarpSize;
#pragma unroll
  for (int o = 0; o < kOutTiles; ++o) {
    // 16 consecutive bytes a lane: no two lanes of a quarter warp, which go
    // to the banks together, meet in one.
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      mine[r * kWarpSize] = BitsOf(sums[o][r]);
    }
    __syncthreads();
    for (int i = thread; i < kFragments; i += kThreads) {
      float4 sum = FloatsOf(rings[i]);
      for (int s = 1; s < kSlices; ++s) {
        const float4 next = FloatsOf(rings[s * Mine::kOfWarp + i]);
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
  Launch(blocks, kThreads, Ring<kOutTiles, kRowTiles>::kBytes, stream,
         LinearKernel<T, kOutTiles, kRowTiles>, args);
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
