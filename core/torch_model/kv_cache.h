// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_KV_CACHE_H_
#define OUTRIDER_CORE_TORCH_MODEL_KV_CACHE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/statusor.h"
#include "core/base/session_id.h"
#include "core/model/model_config.h"

namespace outrider {

// Keys and values of one session. The first `length` rows of every layer are
// those of the session's first `length` tokens; what lies behind is garbage.
struct SessionCache {
  int length = 0;
  int capacity = 0;                     // rows of every buffer below
  std::vector<at::Tensor> keys = {};    // by layer: [capacity, num_kv_heads,
  std::vector<at::Tensor> values = {};  // head_dim], contiguous
};

struct KvCacheOptions {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  int64_t max_cached_tokens = 0;  // over all sessions; 0 means no bound
};

// The caches of all sessions, within one bound. The bound counts allocated
// rows, so it is one of memory. Confined to the model's thread.
class KvCache {
 public:
  KvCache(const ModelConfig& config, const KvCacheOptions& options);

  // 0 for an unknown session.
  int Length(const SessionId& session) const;

  // Cuts the session's cache, created where unknown, to `keep_length` and makes
  // room for `length` tokens in all. Valid until the session is released.
  // RESOURCE_EXHAUSTED where the bound does not allow it, or an exception of
  // the allocator: then nothing changed.
  absl::StatusOr<SessionCache*> Reserve(const SessionId& session,
                                        int keep_length, int length);

  void Release(const SessionId& session);

  int64_t num_cached_tokens() const { return num_rows_; }  // allocated

 private:
  // Rows to allocate for `length` tokens where `used` are already allocated to
  // the session; 0 where the bound forbids it.
  int NewCapacity(int length, int used) const;
  at::Tensor NewBuffer(int capacity, const at::Tensor& old,
                       int keep_length) const;

  const KvCacheOptions options_;
  const int num_layers_;
  const int num_kv_heads_;
  const int head_dim_;
  const int context_length_;
  absl::node_hash_map<SessionId, SessionCache> sessions_;
  int64_t num_rows_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_KV_CACHE_H_
