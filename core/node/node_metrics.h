// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_METRICS_H_
#define OUTRIDER_CORE_NODE_NODE_METRICS_H_

#include <string>

#include "core/node/node.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// Puts what a node counts on /metrics. It must outlive the registry's use.
// `method` is the call that runs the model: "Draft" or "Verify".
void AddNodeMetrics(MetricRegistry& registry, const Node& node,
                    const std::string& method, bool is_simulated);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_METRICS_H_
