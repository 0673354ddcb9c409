// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/client_status.h"

#include "coordinator/nodes/refusal_reasons.h"
#include "coordinator/nodes/session_errors.h"
#include "core/base/error_reason.h"
#include "core/base/retry_delay.h"
#include "core/rpc/status_convert.h"

namespace outrider {

absl::Status ForClients(const absl::Status& status) {
  if (IsPoison(status)) {
    return WithErrorReason(
        absl::InternalError(
            "verifiers were lost, one after the other, while they had this "
            "request: it is tried on no other, and should not be sent again or "
            "resumed before it is known what they died of"),
        kPoisonReason);
  }
  if (IsOutgrown(status)) return status;  // its words are our own
  if (IsMessageTooLarge(status)) {
    return WithErrorReason(
        absl::FailedPreconditionError(
            "a message of this session has more bytes than its receiver "
            "accepts; a thinner reply_format, fewer num_speculative_tokens or "
            "a smaller draft_options.support_size takes fewer"),
        kMessageTooLargeReason);
  }
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return status;
    case absl::StatusCode::kCancelled:
      // Either the client did, which hears nothing any more, or Drain.
      return absl::UnavailableError(
          "this coordinator is shutting down; nothing delivered is lost: "
          "resume elsewhere with the same request, the reported seed and model "
          "and the delivered tokens");
    case absl::StatusCode::kResourceExhausted:
      if (const auto delay = RetryDelayOf(status)) {
        return WithRetryDelay(
            absl::ResourceExhaustedError(
                "every verifier is full, and so is the queue of this "
                "coordinator; try again later"),
            *delay);
      }
      return absl::ResourceExhaustedError(
          "the verifier has no room for this session now; resume later with "
          "the same request, the reported seed and model and the delivered "
          "tokens");
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return absl::UnavailableError(
          "the verifier does not answer; nothing delivered is lost: resume "
          "with the same request, the reported seed and model and the "
          "delivered tokens");
    case absl::StatusCode::kAborted:
      return absl::AbortedError(
          "the model behind this stream was replaced by another one: resume "
          "where its own is served, or send the request again without the "
          "delivered tokens");
    default:
      return absl::InternalError(
          "the model failed on this session; the coordinator's log says why");
  }
}

}  // namespace outrider
