// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_LOG_METADATA_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_LOG_METADATA_H_

#include <grpcpp/client_context.h>

#include "core/wire/node_calls.h"

namespace outrider {

// Sends along what the node's log is to call the request; empty ids are not
// sent.
void AddLogMetadata(const LogIds& ids, grpc::ClientContext& context);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_LOG_METADATA_H_
