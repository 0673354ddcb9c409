// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_TABLE_LM_H_
#define OUTRIDER_CORE_TESTING_TABLE_LM_H_

#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/session_id.h"
#include "core/base/token.h"
#include "core/model/causal_lm.h"

namespace outrider::testing {

// A CausalLm whose logits are a function of the context. Its caches hold the
// tokens themselves, so that a mistake in cache arithmetic becomes a wrong
// context, and a wrong context another distribution. Confined to one thread.
class TableLm final : public CausalLm {
 public:
  // [vocab_size] logits of the token after `context`.
  using Table =
      std::function<std::vector<float>(absl::Span<const TokenId> context)>;
  // For a cache that cuts wrongly, unnoticed: how many entries it leaves.
  struct CutView {
    int num_entries = 0;    // those that are really there
    int cached_length = 0;  // what should be there; equal in a correct cache
    int num_appended = 0;   // by the call before this one
    int keep_length = 0;
  };
  using Cut = std::function<int(const CutView&)>;

  struct Options {
    Table table = {};
    int vocab_size = 0;
    int context_length = 1 << 20;
    std::vector<TokenId> eos_ids = {};
    Cut cut = {};  // empty: keep_length, as it should be
  };

  explicit TableLm(Options options);

  const ModelInfo& info() const override { return info_; }
  std::vector<absl::StatusOr<LogitRows>> Extend(
      absl::Span<const Extension> batch) override;
  void Release(const SessionId& session) override { caches_.erase(session); }

  // The tokens whose entries the cache holds; empty for an unknown session.
  TokenSeq Cache(const SessionId& session) const;
  int num_sessions() const { return static_cast<int>(caches_.size()); }
  // Tokens run through the model so far, over all sessions.
  int num_tokens_run() const { return num_tokens_run_; }

 private:
  absl::StatusOr<LogitRows> ExtendOne(const Extension& extension);

  struct Entries {
    TokenSeq tokens = {};
    int cached_length = 0;  // as the caller knows it
    int num_appended = 0;   // last
  };

  const Options options_;
  ModelInfo info_;
  absl::flat_hash_map<SessionId, Entries> caches_;
  int num_tokens_run_ = 0;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_TABLE_LM_H_
