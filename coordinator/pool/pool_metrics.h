// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_POOL_METRICS_H_
#define OUTRIDER_COORDINATOR_POOL_POOL_METRICS_H_

#include <cstddef>

#include "coordinator/pool/node_pool.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// Nodes by state, and whether speculation goes on: a spec_engaged of 0 while
// drafters are configured is an alarm. The pool must outlive the registry's
// use.
void AddPoolMetrics(NodePool& pool, size_t num_drafters_configured,
                    MetricRegistry& registry);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_POOL_METRICS_H_
