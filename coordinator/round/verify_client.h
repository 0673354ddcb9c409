// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_VERIFY_CLIENT_H_
#define OUTRIDER_COORDINATOR_ROUND_VERIFY_CLIENT_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/round/session.h"
#include "core/base/task.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/draft.h"
#include "core/sampling/target_row.h"

namespace outrider {

// What the target says to a draft.
struct DraftScore {
  // One more than the draft has tokens; they may refer to the session's coins.
  std::vector<TargetRow> rows = {};
  // In place of the rows where the verifier has judged already, by the same
  // rule and coins (REPLY_FORMAT_TOKENS).
  std::optional<Verdict> verdict = {};
};

// Where target rows come from, as the decoder sees it.
class VerifyClient {
 public:
  virtual ~VerifyClient() = default;
  // Brings the verifier's cache up to date with the session and scores the
  // draft.
  virtual Task<absl::StatusOr<DraftScore>> Score(Session& session,
                                                 const Draft& draft) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_VERIFY_CLIENT_H_
