// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_COPY_BLOCKS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_COPY_BLOCKS_H_

#include <cstddef>

#include "core/kernels/cuda/element.h"

namespace outrider::kernels::cuda {

// KV blocks of all layers, in one launch: a copy for each layer's keys and
// values would take longer to ask for than to make. The arguments go with the
// launch, so that no memory of the host has to stay.
struct CopyBlocksArgs {
  static constexpr int kMostPairs = 64;  // of one launch
  struct Pair {
    int from = 0;
    int to = 0;
  };

  // [num_arrays, array_bytes]: in each array block i begins at i * block_bytes,
  // which is a multiple of 16, as array_bytes is.
  void* arrays = nullptr;
  int num_arrays = 0;
  size_t array_bytes = 0;
  int block_bytes = 0;
  int num_pairs = 0;
  Pair pairs[kMostPairs] = {};  // no block that one writes is another's
};

void CopyBlocks(const CopyBlocksArgs& args, Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_COPY_BLOCKS_H_
