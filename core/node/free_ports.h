// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_FREE_PORTS_H_
#define OUTRIDER_CORE_NODE_FREE_PORTS_H_

#include "absl/status/status.h"
#include "core/rpc/server_flags.h"

namespace outrider {

// Whether --listen and --metrics-listen could be listened on now, before
// minutes are spent on weights. UNAVAILABLE, in the words of the servers
// themselves, where they could not. Nothing is kept: who listens there in the
// end asks again. A name that takes long to resolve takes as long here.
absl::Status CheckPortsAreFree(const ServerFlags& flags);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_FREE_PORTS_H_
