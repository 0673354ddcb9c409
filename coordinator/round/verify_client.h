// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_VERIFY_CLIENT_H_
#define OUTRIDER_COORDINATOR_ROUND_VERIFY_CLIENT_H_

#include "absl/status/statusor.h"
#include "coordinator/round/session.h"
#include "core/base/task.h"
#include "core/sampling/draft.h"
#include "core/wire/draft_score.h"
#include "core/wire/round_stats.h"

namespace outrider {

// What the target says to a draft, and what it took.
struct ScoredDraft {
  DraftScore score = {};
  RoundStats::Link link = {};
  int next_run = 1;  // see RoundStats
};

// Where target rows come from, as the decoder sees it.
class VerifyClient {
 public:
  virtual ~VerifyClient() = default;
  // How many drafts it takes after the session's text.
  virtual int MostDrafts(const Session& session) const = 0;
  // Brings the verifier's cache up to date with the session and scores the
  // draft. Where the session goes to a verifier that takes fewer, the draft
  // loses its last ones.
  virtual Task<absl::StatusOr<ScoredDraft>> Score(Session& session,
                                                  Draft& draft) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_VERIFY_CLIENT_H_
