// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server_metrics.h"

namespace outrider {

void AddServerMetrics(const RpcServer& server, MetricRegistry& registry) {
  for (const UnreadReason reason : kUnreadReasons) {
    registry.AddSource(
        {.name = "unread_requests_total",
         .help = "Calls refused before their request was read, which no other "
                 "metric has, by reason.",
         .kind = MetricRegistry::Kind::kCounter,
         .labels = {{"reason", NameOf(reason)}},
         .read = [&server, reason] {
           return static_cast<double>(server.unread().NumOf(reason));
         }});
  }
}

}  // namespace outrider
