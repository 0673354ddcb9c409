// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_METRICS_H_
#define OUTRIDER_CORE_NODE_NODE_METRICS_H_

#include <string>

#include "core/node/node_counters.h"
#include "core/node/node_flags.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// Puts a node's counters on /metrics. They must outlive the registry's use.
// `method` is the call that runs the model: "Draft" or "Verify".
void AddNodeMetrics(MetricRegistry& registry, const NodeCounters& counters,
                    const std::string& method, const NodeFlags& flags);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_METRICS_H_
