// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_KV_BLOCKS_H_
#define OUTRIDER_CORE_TORCH_MODEL_KV_BLOCKS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/base/kv_block.h"
#include "core/model/model_config.h"

namespace outrider {

// The keys and values of one layer, in blocks: [num_blocks, kKvBlockLength,
// num_kv_heads, head_dim], contiguous.
struct LayerKv {
  at::Tensor keys = {};
  at::Tensor values = {};
};

// The memory of a model's KV blocks; who owns which is not known here. One
// thread at a time may use it.
class KvBlocks {
 public:
  KvBlocks(const ModelConfig& config, at::ScalarType dtype);

  // The bytes of one block, in all layers.
  int64_t block_bytes() const;
  // What this process could still have.
  int64_t AvailableBytes() const;
  int num_blocks() const { return num_blocks_; }
  const LayerKv& layer(int index) const { return layers_[index]; }

  // Once. A block takes memory from when it is first written. Throws
  // what torch throws.
  void Allocate(int num_blocks);
  void Copy(KvBlockId from, KvBlockId to);

 private:
  // Constant after construction.
  const int num_layers_;
  const std::vector<int64_t> block_sizes_;  // the dimensions of one
  const at::ScalarType dtype_;

  int num_blocks_ = 0;
  std::vector<LayerKv> layers_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_KV_BLOCKS_H_
