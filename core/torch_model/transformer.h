// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_TRANSFORMER_H_
#define OUTRIDER_CORE_TORCH_MODEL_TRANSFORMER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/model/model_config.h"
#include "core/torch_model/kv_cache.h"
#include "core/torch_model/weights.h"

namespace outrider {

// What one session adds to a pass: `tokens` behind the first `cache->length`
// ones; the cache has room for them.
struct Continuation {
  SessionCache* cache = nullptr;
  absl::Span<const TokenId> tokens = {};
  int num_logit_rows = 0;  // for the last tokens
};

// The forward pass of a decoder-only transformer. Confined to one thread, as
// the caches it writes are.
class Transformer {
 public:
  Transformer(const ModelConfig& config, ModelWeights weights,
              std::unique_ptr<const Ops> ops, at::Device device);

  // One ragged pass over all sessions: fills their caches, whose lengths are
  // the caller's to advance. [sum of num_logit_rows, vocab_size] float32 on the
  // host; undefined where that sum is 0. Throws what torch throws.
  at::Tensor Forward(absl::Span<const Continuation> batch) const;

 private:
  // Constant after construction.
  ModelConfig config_;
  ModelWeights weights_;
  std::unique_ptr<const Ops> ops_;
  at::Device device_;
  std::vector<float> frequencies_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_TRANSFORMER_H_
