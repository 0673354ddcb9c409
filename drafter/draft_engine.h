// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_DRAFT_ENGINE_H_
#define OUTRIDER_DRAFTER_DRAFT_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "core/drafting/draft_strategy.h"
#include "core/engine/call_work.h"
#include "core/sampling/random_source.h"
#include "core/wire/node_calls.h"

namespace outrider {

// The drafter without gRPC and sessions: makes each call a piece of work, which
// says pass by pass what it wants of the model (docs/architecture.md has a
// table). Thread-safe.
class DraftEngine {
 public:
  using Call = DraftCall;
  using Reply = DraftReply;
  using CallWork = outrider::CallWork<Call, Reply>;
  // Makes the coins of one request from its seed.
  using RandomSourceFactory =
      std::function<std::unique_ptr<RandomSource>(uint64_t seed)>;

  struct Options {
    int vocab_size = 0;
    int context_length = 0;
    int max_draft_tokens = kDefaultMaxDraftTokens;
    int max_outcomes = 0;  // of drafts in flight; 0: it cannot draft for them
    bool model_answers = true;  // questions about rows; else none are asked
    RandomSourceFactory random_source = {};  // empty: Coins
  };

  DraftEngine(std::unique_ptr<DraftStrategy> strategy, Options options);

  // INVALID_ARGUMENT: malformed.
  absl::Status Check(const DraftCall& call) const;
  // The work of a call that passed the check. `content_digest` identifies its
  // bytes.
  std::unique_ptr<Work> MakeWork(DraftCall call, uint64_t content_digest,
                                 std::function<bool()> is_cancelled,
                                 CallWork::Done done) const;

 private:
  class DraftWork;

  absl::Status CheckInFlight(const DraftCall& call) const;
  std::unique_ptr<Work> MakeAheadWork(DraftCall call, uint64_t content_digest,
                                      std::function<bool()> is_cancelled,
                                      CallWork::Done done) const;
  // Fewer are drafted at the context's end: that depends on lengths alone.
  int DraftLength(const DraftCall& call) const;
  std::unique_ptr<RandomSource> MakeCoins(uint64_t seed) const;

  const std::unique_ptr<DraftStrategy> strategy_;
  const Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_DRAFT_ENGINE_H_
