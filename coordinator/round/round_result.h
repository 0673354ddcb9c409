// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_ROUND_RESULT_H_
#define OUTRIDER_COORDINATOR_ROUND_ROUND_RESULT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/round/session.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/draft.h"
#include "core/sampling/token_logprobs.h"
#include "core/wire/draft_score.h"
#include "core/wire/round_stats.h"

namespace outrider {

// What one round has done.
struct RoundResult {
  Verdict verdict = {};
  // One for each token that it committed; none where the session asks for none.
  std::vector<RowLogprobs> logprobs = {};
  RoundStats stats = {};
};

// The log-probabilities of what a round gives to the text: the accepted
// drafts, the next token and those after it. Asked for before they are
// committed. INTERNAL where the score does not have them.
absl::StatusOr<std::vector<RowLogprobs>> LogprobsOf(const DraftScore& score,
                                                    const Draft& draft,
                                                    const Verdict& verdict,
                                                    const Session& session);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_ROUND_RESULT_H_
