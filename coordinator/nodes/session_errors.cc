// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_errors.h"

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/refusal_reasons.h"
#include "core/base/error_reason.h"

namespace outrider {

absl::Status OutgrownError(int length, int room) {
  const absl::Status status = WithErrorReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the text takes a cache of ", length,
          " tokens and those that continue it, and the verifiers that are "
          "ready have memory for ",
          room, "; send less, or try where they have more")),
      kOutOfKvMemoryReason);
  return WithErrorMetadata(status, "num_tokens", absl::StrCat(length));
}

bool IsOutgrown(const absl::Status& status) {
  return ErrorReasonOf(status) == kOutOfKvMemoryReason;
}

absl::Status PoisonError() {
  return WithErrorReason(
      absl::InternalError(
          "verifiers were lost one after the other while they had this step, "
          "and no other session of this kind was at the last: no other one is "
          "tried"),
      kPoisonReason);
}

bool IsPoison(const absl::Status& status) {
  return ErrorReasonOf(status) == kPoisonReason;
}

}  // namespace outrider
