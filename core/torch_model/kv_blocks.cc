// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/kv_blocks.h"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "core/base/available_memory.h"
#include "core/base/check.h"

namespace outrider {

KvBlocks::KvBlocks(const ModelConfig& config, at::ScalarType dtype)
    : num_layers_(config.num_layers),
      block_sizes_({kKvBlockLength, config.num_kv_heads, config.head_dim}),
      dtype_(dtype) {}

int64_t KvBlocks::block_bytes() const {
  const int64_t num_elements =
      block_sizes_[0] * block_sizes_[1] * block_sizes_[2];
  return 2 * num_layers_ * num_elements *
         static_cast<int64_t>(at::elementSize(dtype_));
}

int64_t KvBlocks::AvailableBytes() const { return AvailableMemory(); }

void KvBlocks::Allocate(int num_blocks) {
  OUTRIDER_CHECK(num_blocks_ == 0) << "allocated twice";
  std::vector<int64_t> sizes = {num_blocks};
  sizes.insert(sizes.end(), block_sizes_.begin(), block_sizes_.end());
  std::vector<LayerKv> layers;
  for (int i = 0; i < num_layers_; ++i) {
    layers.push_back({at::empty(sizes, dtype_), at::empty(sizes, dtype_)});
  }
  layers_ = std::move(layers);
  num_blocks_ = num_blocks;
}

void KvBlocks::Copy(KvBlockId from, KvBlockId to) {
  const int64_t bytes = block_bytes() / (2 * num_layers_);
  for (const LayerKv& layer : layers_) {
    for (const at::Tensor& half : {layer.keys, layer.values}) {
      char* const data = static_cast<char*>(half.data_ptr());
      std::memcpy(data + to * bytes, data + from * bytes,
                  static_cast<size_t>(bytes));
    }
  }
}

}  // namespace outrider
