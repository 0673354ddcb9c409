// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_MISS_RECOVERY_H_
#define OUTRIDER_COORDINATOR_PEERS_MISS_RECOVERY_H_

#include "absl/status/status.h"
#include "coordinator/round/cache_mirror.h"
#include "core/session/cache_delta.h"
#include "core/wire/node_calls.h"
#include "core/wire/round_stats.h"

namespace outrider {

// So many calls in a row may end in a miss; then the round's question to this
// node has failed: ABORTED of a drafter, UNAVAILABLE of a verifier. No node's
// breaker counts that, as the node answers.
inline constexpr int kMaxMissesPerCall = 3;

// What a node answers that does not have the session any more, and what stands
// for the answer of one that is gone: the session is opened again, with the
// same drafts.
VerifyReply ForgottenReply(const VerifyCall& call);

// Corrects the mirror after a miss, so that the next header sends what the node
// lacks; counts it.
void RecoverFrom(const Miss& miss, CacheMirror& cache, RoundStats::Link& link);

// UNAVAILABLE unless the reply belongs to this request: a late or crossed one
// must never be taken for it.
absl::Status CheckEcho(const RequestHeader& request, const ReplyHeader& reply);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_MISS_RECOVERY_H_
