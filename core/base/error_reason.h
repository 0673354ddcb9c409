// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_ERROR_REASON_H_
#define OUTRIDER_CORE_BASE_ERROR_REASON_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace outrider {

// Why a call failed, for programs that have to tell failures of one code apart:
// capitals, as a payload of the status. It is told to whoever calls us, as a
// google.rpc.ErrorInfo (core/rpc/status_convert), and believed of nobody whom
// we call.
inline constexpr char kErrorReasonUrl[] = "outrider/error-reason";

inline absl::Status WithErrorReason(absl::Status status,
                                    absl::string_view reason) {
  status.SetPayload(kErrorReasonUrl, absl::Cord(reason));
  return status;
}

// Nothing where the status does not say.
inline std::optional<std::string> ErrorReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorReasonUrl);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_ERROR_REASON_H_
