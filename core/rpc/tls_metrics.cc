// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/tls_metrics.h"

#include <memory>
#include <string>

#include "core/rpc/tls_expiry.h"

namespace outrider {

void AddTlsMetrics(const TlsFiles& files, MetricRegistry& registry) {
  const auto expiry = std::make_shared<TlsExpiry>(files);
  const auto add = [&](const std::string& flag,
                       TlsExpiry::Time (TlsExpiry::*read)()) {
    registry.AddSource(
        {.name = "tls_certificate_expiration_timestamp_seconds",
         .help = "Unix time at which a certificate in use expires, by the flag "
                 "that names its file; of several the first.",
         .labels = {{"file", flag}},
         .read = [expiry, read] {
           return static_cast<double>(
               ((*expiry).*read)().time_since_epoch().count());
         }});
  };
  if (files.has_identity()) add("tls-cert", &TlsExpiry::Certificate);
  if (files.has_authority()) add("tls-ca", &TlsExpiry::Authority);
}

}  // namespace outrider
