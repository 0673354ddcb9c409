// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_TRANSFORMER_H_
#define OUTRIDER_CORE_TORCH_MODEL_TRANSFORMER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/model/causal_lm.h"
#include "core/model/model_config.h"
#include "core/torch_model/kv_blocks.h"
#include "core/torch_model/weights.h"

namespace outrider {

// The forward pass of a decoder-only transformer. One thread at a time may use
// it, as is so for the blocks that it writes.
class Transformer {
 public:
  Transformer(const ModelConfig& config, ModelWeights weights,
              std::unique_ptr<const Ops> ops);

  // One ragged pass over all sessions, each of which passes CheckExtension:
  // writes their keys and values to `kv`. [sum of num_rows, vocab_size]
  // float32; undefined where that sum is 0. Throws what torch throws.
  at::Tensor Forward(absl::Span<const Extension> batch,
                     const KvBlocks& kv) const;

 private:
  // Constant after construction.
  ModelConfig config_;
  ModelWeights weights_;
  std::unique_ptr<const Ops> ops_;
  std::vector<float> frequencies_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_TRANSFORMER_H_
