// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_SERVER_METRICS_H_
#define OUTRIDER_CORE_RPC_SERVER_METRICS_H_

#include "core/rpc/server.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// What a server refuses itself. It must outlive the registry's use.
void AddServerMetrics(const RpcServer& server, MetricRegistry& registry);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SERVER_METRICS_H_
