// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/copy_blocks.h"
#include "core/kernels/cuda/device.h"

namespace outrider::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// One block a pair and array.
__global__ void __launch_bounds__(kThreads)
    CopyBlocksKernel(CopyBlocksArgs args) {
  const CopyBlocksArgs::Pair pair = args.pairs[blockIdx.x];
  char* const array =
      static_cast<char*>(args.arrays) + blockIdx.y * args.array_bytes;
  const size_t block_bytes = static_cast<size_t>(args.block_bytes);
  const auto* from =
      reinterpret_cast<const uint4*>(array + pair.from * block_bytes);
  auto* to = reinterpret_cast<uint4*>(array + pair.to * block_bytes);
  const int size = args.block_bytes / static_cast<int>(sizeof(uint4));
  for (int i = static_cast<int>(threadIdx.x); i < size; i += kThreads) {
    to[i] = from[i];
  }
}

}  // namespace

void CopyBlocks(const CopyBlocksArgs& args, Stream stream) {
  if (args.num_pairs == 0) return;
  Launch(dim3(args.num_pairs, args.num_arrays), kThreads, 0, stream,
         CopyBlocksKernel, args);
}

}  // namespace outrider::kernels::cuda
