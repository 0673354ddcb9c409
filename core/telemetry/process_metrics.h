// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TELEMETRY_PROCESS_METRICS_H_
#define OUTRIDER_CORE_TELEMETRY_PROCESS_METRICS_H_

#include "absl/strings/string_view.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// Which build this process is, from "RELEASE COMMIT"; and what the system says
// of it, by the names that Prometheus' client libraries have for that.
void AddProcessMetrics(absl::string_view build, MetricRegistry& registry);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TELEMETRY_PROCESS_METRICS_H_
