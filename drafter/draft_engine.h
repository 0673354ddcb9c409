// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_DRAFT_ENGINE_H_
#define OUTRIDER_DRAFTER_DRAFT_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "core/drafting/draft_strategy.h"
#include "core/sampling/random_source.h"
#include "core/session/session_table.h"
#include "core/wire/node_calls.h"

namespace outrider {

// The drafter without gRPC: one call in, one reply out. Confined to the
// model's thread.
class DraftEngine {
 public:
  // Makes the coins of one request from its seed.
  using RandomSourceFactory =
      std::function<std::unique_ptr<RandomSource>(uint64_t seed)>;

  struct Options {
    int vocab_size = 0;
    int context_length = 0;
    int max_draft_tokens = kDefaultMaxDraftTokens;
    SessionTable::Options sessions = {};
    RandomSourceFactory random_source = {};  // empty: Coins
  };

  DraftEngine(std::unique_ptr<DraftStrategy> strategy, Options options);

  // `content_digest` identifies the request's bytes, `now` renews its lease.
  // INVALID_ARGUMENT: malformed; otherwise what the strategy says, in which
  // case the session is forgotten.
  absl::StatusOr<DraftReply> Draft(const DraftCall& call,
                                   uint64_t content_digest,
                                   SessionTable::Clock::time_point now);
  // Advisory; see SessionTable.
  bool Truncate(const RequestHeader& header, int length);
  bool Release(const RequestHeader& header);
  void Expire(SessionTable::Clock::time_point now);

  const SessionTable& sessions() const { return sessions_; }

 private:
  absl::Status Check(const DraftCall& call) const;
  absl::StatusOr<Proposal> Propose(const DraftCall& call);

  const std::unique_ptr<DraftStrategy> strategy_;
  const Options options_;
  SessionTable sessions_;
};

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_DRAFT_ENGINE_H_
