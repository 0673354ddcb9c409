// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_ATTENTION_H_
#define OUTRIDER_CORE_TORCH_MODEL_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/torch_model/kv_blocks.h"
#include "core/torch_model/norm.h"
#include "core/torch_model/ops.h"

namespace outrider {

struct AttentionWeights {
  LinearWeights qkv = {};       // [query_size + 2 * kv_size, hidden_size]
  NormWeights query_norm = {};  // [head_dim]; undefined without qk norm
  NormWeights key_norm = {};    // [head_dim]; undefined without qk norm
  LinearWeights output = {};    // [hidden_size, query_size]
};

// What the rows of a pass share in every layer.
struct PassLayout {
  std::vector<kernels::KvSegment> segments = {};  // in the order of the rows
  RotaryAngles angles = {};  // undefined where positions are learned
};

struct AttentionLayer {
  const ModelContext& model;
  const AttentionWeights& weights;
  const LayerKv& kv;
  int index = 0;  // of the layer
};

// Stores the rows' keys and values in their sessions' blocks, lets each row
// look at its own session, and adds what it saw to `sum`. x and sum: [num_rows,
// hidden_size].
void AddSelfAttention(const AttentionLayer& layer, const PassLayout& layout,
                      const at::Tensor& x, at::Tensor& sum);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_ATTENTION_H_
