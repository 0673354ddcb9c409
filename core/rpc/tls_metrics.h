// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_TLS_METRICS_H_
#define OUTRIDER_CORE_RPC_TLS_METRICS_H_

#include "core/rpc/tls_files.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// When the certificates of the files expire, for those that there are: none in
// plain text.
void AddTlsMetrics(const TlsFiles& files, MetricRegistry& registry);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_TLS_METRICS_H_
