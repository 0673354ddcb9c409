// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_CLIENT_STATUS_H_
#define OUTRIDER_COORDINATOR_SERVICE_CLIENT_STATUS_H_

#include "absl/status/status.h"

namespace outrider {

// What a client is told of how its generation ended: code, reason and what it
// can do, never an address or a peer's own words, which the log has.
absl::Status ForClients(const absl::Status& status);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_CLIENT_STATUS_H_
