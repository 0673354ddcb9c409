// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/kv_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

constexpr int kMinRows = 16;

}  // namespace

KvCache::KvCache(const ModelConfig& config, const KvCacheOptions& options)
    : options_(options),
      num_layers_(config.num_layers),
      num_kv_heads_(config.num_kv_heads),
      head_dim_(config.head_dim),
      context_length_(config.context_length) {}

int KvCache::Length(const SessionId& session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? 0 : found->second.length;
}

int KvCache::NewCapacity(int length, int used) const {
  // Doubling keeps copying linear in the final length.
  const int generous = static_cast<int>(std::min<int64_t>(
      std::max<int64_t>({length, 2 * int64_t{used}, kMinRows}),
      context_length_));
  if (options_.max_cached_tokens == 0) return generous;
  const int64_t available = options_.max_cached_tokens - (num_rows_ - used);
  if (length > available) return 0;
  return static_cast<int>(std::min<int64_t>(generous, available));
}

at::Tensor KvCache::NewBuffer(int capacity, const at::Tensor& old,
                              int keep_length) const {
  at::Tensor buffer =
      at::empty({capacity, num_kv_heads_, head_dim_},
                at::dtype(options_.dtype).device(options_.device));
  if (keep_length > 0) {
    buffer.narrow(0, 0, keep_length).copy_(old.narrow(0, 0, keep_length));
  }
  return buffer;
}

absl::StatusOr<SessionCache*> KvCache::Reserve(const SessionId& session,
                                               int keep_length, int length) {
  const auto found = sessions_.find(session);
  const int used = found == sessions_.end() ? 0 : found->second.capacity;
  if (used > 0 && length <= used) {
    found->second.length = keep_length;
    return &found->second;
  }

  const int capacity = NewCapacity(length, used);
  if (capacity == 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room to cache ", length, " tokens: ", num_rows_ - used, " of ",
        options_.max_cached_tokens, " are taken by other sessions"));
  }
  // Built aside: running out of memory here must leave the old cache whole.
  SessionCache grown;
  grown.capacity = capacity;
  for (int i = 0; i < num_layers_; ++i) {
    const bool is_new = used == 0;
    grown.keys.push_back(NewBuffer(
        capacity, is_new ? at::Tensor() : found->second.keys[i], keep_length));
    grown.values.push_back(
        NewBuffer(capacity, is_new ? at::Tensor() : found->second.values[i],
                  keep_length));
  }
  grown.length = keep_length;
  SessionCache& cache = sessions_[session];
  cache = std::move(grown);
  num_rows_ += capacity - used;
  return &cache;
}

void KvCache::Release(const SessionId& session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  num_rows_ -= found->second.capacity;
  sessions_.erase(found);
}

}  // namespace outrider
