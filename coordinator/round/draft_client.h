// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_ROUND_DRAFT_CLIENT_H_

#include "absl/status/statusor.h"
#include "coordinator/round/round_stats.h"
#include "coordinator/round/session.h"
#include "core/base/task.h"
#include "core/sampling/draft.h"

namespace outrider {

// A draft, and what it took.
struct ProposedDraft {
  Draft draft = {};
  RoundStats::Link link = {};
  int num_looked_up = 0;  // of the draft: from the text, not the drafter
};

// Where drafts come from, as the decoder sees it.
class DraftClient {
 public:
  virtual ~DraftClient() = default;
  // Brings the drafter's cache up to date with the session and asks for up to
  // `num_tokens` drafts; 0 only fills the cache.
  virtual Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                                      int num_tokens) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_DRAFT_CLIENT_H_
