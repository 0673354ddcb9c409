// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_NODE_DRAINS_H_
#define OUTRIDER_CORE_BASE_NODE_DRAINS_H_

#include "absl/status/status.h"
#include "core/base/error_reason.h"

namespace outrider {

// UNAVAILABLE: a node that shuts down, asked what it is. It is the one reason
// that is believed of whom we call: calls that end with such a node say nothing
// of what they asked for.
inline constexpr char kNodeDrainsReason[] = "NODE_DRAINS";

inline absl::Status NodeDrainsError() {
  return WithErrorReason(absl::UnavailableError("this node is shutting down"),
                         kNodeDrainsReason);
}

inline bool IsNodeDrains(const absl::Status& status) {
  return absl::IsUnavailable(status) &&
         ErrorReasonOf(status) == kNodeDrainsReason;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_NODE_DRAINS_H_
