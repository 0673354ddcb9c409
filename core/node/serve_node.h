// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_SERVE_NODE_H_
#define OUTRIDER_CORE_NODE_SERVE_NODE_H_

#include <grpcpp/impl/codegen/service_type.h>

#include <string>

#include "absl/status/status.h"
#include "core/node/node.h"
#include "core/node/node_flags.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

struct ServedNode {
  std::string name;  // "outrider-drafter"
  std::string what;  // for people
  const ServerFlags& flags;
  Node& node;
  grpc::Service& service;  // the node's own, beside that of its cache
  const MetricRegistry& metrics;
};

// Serves until a termination signal, then drains. Prints one line with the
// address when it serves: "NAME listening on HOST:PORT ...".
//
// SIGTERM: health turns NOT_SERVING and Describe UNAVAILABLE, so coordinators
// bring no new sessions; those that run are served until no call has come for a
// while, at most --drain-seconds. SIGINT, or a second signal, ends it at once,
// but for calls in flight. UNAVAILABLE: the device was lost, which ends it too.
absl::Status ServeNode(const ServedNode& served);

// What --check-config checks: flags, addresses, TLS files, and the files of the
// model, which is not loaded. `needs_weights`: not for drafting by n-grams.
absl::Status CheckNodeConfig(const NodeFlags& flags, bool needs_weights);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_SERVE_NODE_H_
