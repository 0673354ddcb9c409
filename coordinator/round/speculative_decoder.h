// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_SPECULATIVE_DECODER_H_
#define OUTRIDER_COORDINATOR_ROUND_SPECULATIVE_DECODER_H_

#include "absl/status/statusor.h"
#include "coordinator/round/draft_client.h"
#include "coordinator/round/draft_length_policy.h"
#include "coordinator/round/round_result.h"
#include "coordinator/round/session.h"
#include "coordinator/round/verify_client.h"
#include "core/base/task.h"
#include "core/sampling/acceptance_rule.h"

namespace outrider {

// Speculative decoding, one round at a time (Leviathan et al. 2023, Algorithm
// 1; Chen et al. 2023, Algorithm 2). The peers must outlive it.
class SpeculativeDecoder {
 public:
  struct Peers {
    DraftClient& drafter;
    VerifyClient& verifier;
    const AcceptanceRule& rule;
    DraftLengthPolicy& policy;
  };

  explicit SpeculativeDecoder(Peers peers) : peers_(peers) {}

  // Drafts, verifies, judges and commits. On failure nothing is committed, and
  // the session may go on with another round.
  Task<absl::StatusOr<RoundResult>> Round(Session& session);

  // The first round: drafter and verifier take in the prompt at the same time,
  // and the verifier's row gives the first token.
  Task<absl::StatusOr<RoundResult>> FirstRound(Session& session);

 private:
  // Round, with the K that the policy has chosen.
  Task<absl::StatusOr<RoundResult>> RoundOf(Session& session, int k);
  // Ends a round that began with the watch: judges and commits.
  absl::StatusOr<RoundResult> Conclude(const ProposedDraft& proposed,
                                       const ScoredDraft& scored,
                                       const Stopwatch& watch,
                                       Session& session) const;
  // The verifier's own verdict, where its score has one; else this process's
  // rule judges the rows.
  Verdict Judge(const Draft& draft, const DraftScore& score,
                Session& session) const;

  Peers peers_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_SPECULATIVE_DECODER_H_
