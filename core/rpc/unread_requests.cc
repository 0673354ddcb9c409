// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/unread_requests.h"

#include "absl/strings/escaping.h"
#include "core/base/log.h"

namespace outrider {
namespace {

// Longer than any method's. A stranger's may be as long as all metadata, and
// have any bytes.
constexpr size_t kLongestName = 100;

}  // namespace

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

void UnreadRequests::Log(UnreadReason reason, absl::string_view method,
                         const absl::Status& status) {
  if (const auto end = limiters_[static_cast<size_t>(reason)].Admit()) {
    OUTRIDER_LOG(kWarning) << "a request to "
                           << absl::CHexEscape(method.substr(0, kLongestName))
                           << " was refused unread (" << NameOf(reason)
                           << "): " << status << *end;
  }
}

}  // namespace outrider
