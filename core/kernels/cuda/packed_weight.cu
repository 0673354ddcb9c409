// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/kernels/cuda/next_kernel.h"
#include "core/kernels/cuda/numbers.h"
#include "core/kernels/cuda/packed_weight.h"

namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRun = 8;  // inputs that a thread moves: those of one lane

// The place of a run of eight inputs, 8 * run to 8 * run + 7 of an output, in
// 32-bit words from the start of the tiles. Pair j of operand h is at
// + h * kOperandWords + 2 * j.
constexpr int kOperandWords = kWarpSize * 4;
constexpr int kTileWords = 2 * kOperandWords;

__device__ inline size_t FirstWord(int output, int run, int in) {
  const int chunks = (in + kTileIn - 1) / kTileIn;
  const int chunk = run / (kTileIn / kRun), t = run % (kTileIn / kRun);
  const int row = output % kTileOut;
  const int lane = row % 8 * 4 + t;
  return (static_cast<size_t>(output / kTileOut) * chunks + chunk) *
             kTileWords +
         lane * 4 + row / 8;
}

__device__ inline int OutputOf(int row, Placement placement, int first) {
  if (placement == Placement::kConsecutive) return first + row;
  return row / 8 * kTileOut + row % 8 + (placement == Placement::kUp ? 8 : 0);
}

__global__ void __launch_bounds__(kThreads) PackKernel(PackArgs args) {
  const int runs = args.in / kRun;
  const int run = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  if (run >= runs) return;
  const auto* from = static_cast<const uint32_t*>(args.rows) +
                     (static_cast<size_t>(row) * runs + run) * (kRun / 2);
  const int output = OutputOf(row, args.placement, args.first_output);
  auto* to =
      static_cast<uint32_t*>(args.tiles) + FirstWord(output, run, args.in);
  to[0] = from[0];
  to[2] = from[1];
  to[kOperandWords] = from[2];
  to[kOperandWords + 2] = from[3];
}

template <typename T>
__global__ void __launch_bounds__(kThreads) EmbedKernel(EmbedArgs args) {
  LetNextKernelBegin(static_cast<int>(gridDim.y));
  AwaitPreviousKernel();
  const int size = args.table.in;
  const int run = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  if (run >= size / kRun) return;
  const auto* from = static_cast<const uint32_t*>(args.table.tiles) +
                     FirstWord(args.tokens[row], run, size);
  float* to = args.x + static_cast<size_t>(row) * size + run * kRun;
  const float* position =
      args.positions == nullptr
          ? nullptr
          : args.positions +
                static_cast<size_t>(args.row_positions[row]) * size +
                run * kRun;
#pragma unroll
  for (int i = 0; i < kRun / 2; ++i) {
    const uint32_t pair = from[i / 2 * kOperandWords + i % 2 * 2];
    float low = LowOf<T>(pair), high = HighOf<T>(pair);
    if (position != nullptr) {
      low = __fadd_rn(low, position[2 * i]);
      high = __fadd_rn(high, position[2 * i + 1]);
    }
    to[2 * i] = low;
    to[2 * i + 1] = high;
  }
}

}  // namespace

void Pack(const PackArgs& args, Stream stream) {
  // A grid's y ends at 65535 and a vocabulary does not.
  constexpr int kMaxRows = 32768;
  for (int first = 0; first < args.num_rows; first += kMaxRows) {
    PackArgs part = args;
    part.num_rows = std::min(kMaxRows, args.num_rows - first);
    part.rows = static_cast<const uint16_t*>(args.rows) +
                static_cast<size_t>(first) * args.in;
    // kMaxRows is whole tiles, 16 or 8 rows each.
    part.tiles = static_cast<uint16_t*>(args.tiles);
    part.first_output = args.first_output + first;
    if (args.placement != Placement::kConsecutive) {
      part.tiles = static_cast<unsigned char*>(args.tiles) +
                   PackedBytes(2 * first, args.in);
    }
    const dim3 blocks(CeilDiv(args.in / kRun, kThreads), part.num_rows);
    Launch(blocks, kThreads, 0, stream, PackKernel, part);
  }
}

void Embed(const EmbedArgs& args, Stream stream) {
  const dim3 blocks(CeilDiv(args.table.in / kRun, kThreads), args.num_rows);
  LaunchEarly(blocks, kThreads, 0, stream,
              args.table.element == Element::kBFloat16 ? EmbedKernel<Bf16>
                                                       : EmbedKernel<Half>,
              args);
}

}  // namespace outrider::kernels::cuda
