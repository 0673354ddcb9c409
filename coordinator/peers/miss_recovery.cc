// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/miss_recovery.h"

#include "core/base/log.h"

namespace outrider {

VerifyReply ForgottenReply(const VerifyCall& call) {
  return {.header = {.session = call.header.session,
                     .incarnation = call.header.incarnation,
                     .step = call.header.step},
          .outcome = Miss{.reason = MissReason::kUnknownIncarnation}};
}

void RecoverFrom(const Miss& miss, CacheMirror& cache, RoundStats::Link& link) {
  ++link.misses[static_cast<int>(miss.reason)];
  switch (miss.reason) {
    case MissReason::kLength:
      cache.ShrankTo(miss.cached_length);
      return;
    case MissReason::kStale:
      return;  // the next header has a new step
    case MissReason::kPrefix:
      OUTRIDER_LOG(kError) << "a node's cache holds other tokens than ours at "
                              "the same length; it is filled again";
      [[fallthrough]];
    case MissReason::kUnknownIncarnation:
      cache.Forget();
      return;
  }
}

absl::Status CheckEcho(const RequestHeader& request, const ReplyHeader& reply) {
  const bool same_life =
      request.incarnation.is_none() || request.incarnation == reply.incarnation;
  if (reply.session != request.session || reply.step != request.step ||
      !same_life) {
    return absl::UnavailableError("the reply belongs to another request");
  }
  return absl::OkStatus();
}

}  // namespace outrider
