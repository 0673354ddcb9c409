// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_CAUSAL_LM_H_
#define OUTRIDER_CORE_MODEL_CAUSAL_LM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/session_id.h"
#include "core/base/token.h"
#include "core/model/logit_rows.h"

namespace outrider {

// What a loaded model says of itself. Constant.
struct ModelInfo {
  std::string name = {};          // last component of the model directory
  std::string weights_hash = {};  // hex sha256 over names, shapes and bytes
  std::string dtype = {};         // "float32", "bfloat16"
  std::string device = {};        // "cpu", "cuda:0"
  // The kernels' order of accumulation: equal logits, bit for bit, only where
  // dtype and this are equal ("avx512_bf16").
  std::string numerics = {};
  int vocab_size = 0;             // rows of the output head, padding included
  int context_length = 0;         // positions the model can attend over
  std::vector<TokenId> eos_ids = {};
};

// One session's share of a forward pass.
struct Extension {
  SessionId session = {};
  int keep_length = 0;                    // first cut the cache to this,
  absl::Span<const TokenId> tokens = {};  // then append these (at least one),
  int num_rows = 0;                       // and return the last rows
};

// A causal language model with one KV cache per session. Caches are soft: any
// session may be forgotten between calls, and an unknown session is one of
// length 0. Confined to one thread.
class CausalLm {
 public:
  virtual ~CausalLm() = default;

  virtual const ModelInfo& info() const = 0;

  // Runs all extensions: [num_rows, vocab_size] logits each; row i belongs to
  // the position of the i-th of the last num_rows tokens and predicts the token
  // after it. One that fails leaves its cache as it was (or forgets it) and the
  // others untouched:
  //   INVALID_ARGUMENT    a token outside [0, vocab_size), keep_length beyond
  //                       the cache, more tokens than context_length
  //   RESOURCE_EXHAUSTED  no memory for the cache
  virtual std::vector<absl::StatusOr<LogitRows>> Extend(
      absl::Span<const Extension> batch) = 0;

  // Gives the session's cache back; an unknown session is fine.
  virtual void Release(const SessionId& session) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_CAUSAL_LM_H_
