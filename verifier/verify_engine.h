// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_VERIFIER_VERIFY_ENGINE_H_
#define OUTRIDER_VERIFIER_VERIFY_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "core/model/causal_lm.h"
#include "core/sampling/random_source.h"
#include "core/session/session_table.h"
#include "core/wire/node_calls.h"

namespace outrider {

// The verifier without gRPC: one call in; K + 1 rows out, or what the caller
// needs of them. Confined to the model's thread.
class VerifyEngine {
 public:
  // Makes the coins of one request from its seed.
  using RandomSourceFactory =
      std::function<std::unique_ptr<RandomSource>(uint64_t seed)>;

  struct Options {
    int vocab_size = 0;  // the tokenizer's; the head's padding is cut off
    int max_draft_tokens = kDefaultMaxDraftTokens;
    SessionTable::Options sessions = {};
    RandomSourceFactory random_source = {};  // empty: Coins
  };

  VerifyEngine(std::unique_ptr<CausalLm> model, Options options);

  // `content_digest` identifies the request's bytes, `now` renews its lease.
  // INVALID_ARGUMENT: malformed; otherwise what the model says, in which case
  // the session is forgotten.
  absl::StatusOr<VerifyReply> Verify(const VerifyCall& call,
                                     uint64_t content_digest,
                                     SessionTable::Clock::time_point now);
  // Advisory; see SessionTable.
  bool Truncate(const RequestHeader& header, int length);
  bool Release(const RequestHeader& header);
  void Expire(SessionTable::Clock::time_point now);

  const SessionTable& sessions() const { return sessions_; }
  const CausalLm& model() const { return *model_; }

 private:
  absl::Status Check(const VerifyCall& call) const;
  // K + 1 rows of raw logits.
  absl::StatusOr<LogitRows> Score(const VerifyCall& call);
  // All but the header.
  absl::StatusOr<VerifyReply> Answer(const VerifyCall& call);

  const std::unique_ptr<CausalLm> model_;
  const Options options_;
  SessionTable sessions_;
};

}  // namespace outrider

#endif  // OUTRIDER_VERIFIER_VERIFY_ENGINE_H_
