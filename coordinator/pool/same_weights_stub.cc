// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/same_weights_stub.h"

#include "core/base/status_macros.h"

namespace outrider {

Task<absl::StatusOr<VerifyReply>> SameWeightsStub::Verify(
    const VerifyCall& call, Cancellation& cancellation) {
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      VerifyReply reply, co_await options_.node.Verify(call, cancellation));
  const Incarnation& life = reply.header.incarnation;
  if (life.is_none() || life == life_) co_return reply;
  if (!life_.is_none()) {
    // After the reply, not before: in between, it cannot have been replaced by
    // an older self, which would have to load first.
    OUTRIDER_CO_ASSIGN_OR_RETURN(const NodeDescription node,
                                 co_await options_.describe(cancellation));
    if (node.weights_hash != options_.weights_hash) {
      co_return absl::AbortedError(
          "the verifier came back with other weights than the session began "
          "with");
    }
  }
  life_ = life;
  co_return reply;
}

}  // namespace outrider
