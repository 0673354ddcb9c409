// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_WEIGHTS_H_
#define OUTRIDER_CORE_TORCH_MODEL_WEIGHTS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/model_config.h"
#include "core/model/safetensors.h"
#include "core/torch_model/attention.h"
#include "core/torch_model/feed_forward.h"
#include "core/torch_model/ops.h"

namespace outrider {

struct LayerWeights {
  NormWeights attention_norm = {};
  AttentionWeights attention = {};
  NormWeights feed_forward_norm = {};
  FeedForwardWeights feed_forward = {};
};

struct ModelWeights {
  Matrix token_embedding = {};     // [vocab_size, hidden_size]
  Matrix position_embedding = {};  // [context_length, hidden_size] or none
  std::vector<LayerWeights> layers = {};
  NormWeights final_norm = {};
  LinearWeights head = {};  // [vocab_size, hidden_size]; may be the embedding
  std::string hash = {};    // ModelInfo::weights_hash
};

struct WeightOptions {
  at::ScalarType dtype = at::kFloat;  // of embeddings and linear weights
  at::Device device = at::kCPU;
};

// The memory that the checkpoint's tensors take in this dtype. A head that is a
// copy of the embedding, which is not kept, counts too.
int64_t WeightBytes(const Checkpoint& checkpoint, at::ScalarType dtype);

// Whether the checkpoint is of the model that `config` describes, from its
// headers alone. Every name is accounted for: INVALID_ARGUMENT names what is
// missing, unexpected, or of another shape than `config` says, and
// UNIMPLEMENTED a dtype that is not F32, BF16 or F16.
absl::Status CheckWeights(const ModelConfig& config,
                          const Checkpoint& checkpoint);

// The checkpoint, once CheckWeights has passed it, as `ops` want it. Throws
// what torch throws (out of memory).
absl::StatusOr<ModelWeights> LoadWeights(const ModelConfig& config,
                                         const Checkpoint& checkpoint,
                                         const Ops& ops,
                                         const WeightOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_WEIGHTS_H_
