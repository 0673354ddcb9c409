// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/unread_requests.h"

#include "core/base/log.h"

namespace outrider {

const char* NameOf(UnreadReason reason) {
  switch (reason) {
    case UnreadReason::kMethod:
      return "method";
    case UnreadReason::kMetadata:
      return "metadata";
    case UnreadReason::kTurn:
      return "turn";
    case UnreadReason::kMalformed:
      return "malformed";
  }
  return "";
}

void UnreadRequests::Count(UnreadReason reason, const absl::Status& status) {
  ++counts_[static_cast<size_t>(reason)];
  if (const auto end = limiters_[static_cast<size_t>(reason)].Admit()) {
    OUTRIDER_LOG(kWarning) << "a request was refused unread (" << NameOf(reason)
                           << "): " << status << *end;
  }
}

}  // namespace outrider
