// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/same_model_stub.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/text_promise.h"
#include "core/base/status_macros.h"

namespace outrider {

Task<absl::StatusOr<VerifyReply>> SameModelStub::Verify(
    const VerifyCall& call, Cancellation& cancellation) {
  absl::StatusOr<VerifyReply> answer =
      co_await options_.node.Verify(call, cancellation);
  has_failed_ = has_failed_ || !answer.ok();
  OUTRIDER_CO_ASSIGN_OR_RETURN(VerifyReply reply, std::move(answer));
  const Incarnation& life = reply.header.incarnation;
  if (life.is_none() || life == life_) co_return reply;
  const CacheDelta& delta = call.header.delta;
  const int length =
      delta.keep_length + static_cast<int>(delta.append_tokens.size());
  const bool may_differ =
      !life_.is_none() || length > call.prompt_length || has_failed_;
  if (!reply.model.has_value() && may_differ) {
    // An older node is asked, after the reply, not before: in between, it
    // cannot have been replaced by an older self, which would have to load
    // first.
    OUTRIDER_CO_ASSIGN_OR_RETURN(const NodeDescription node,
                                 co_await options_.describe(cancellation));
    reply.model = node.identity();
  }
  if (reply.model.has_value()) {
    OUTRIDER_CO_RETURN_IF_ERROR(Check(*reply.model, call));
  }
  life_ = life;
  co_return reply;
}

absl::Status SameModelStub::Check(const ModelIdentity& model,
                                  const VerifyCall& call) const {
  const absl::Status same = CheckSame(options_.model, model, PromiseOf(call));
  if (same.ok()) return absl::OkStatus();
  options_.on_other(model);
  return absl::AbortedError(absl::StrCat(
      "the verifier is not the model that the session began with: ",
      same.message()));
}

}  // namespace outrider
