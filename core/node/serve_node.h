// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_SERVE_NODE_H_
#define OUTRIDER_CORE_NODE_SERVE_NODE_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/node/node.h"
#include "core/node/node_flags.h"
#include "core/rpc/rpc_service.h"
#include "core/rpc/server.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

struct ServedNode {
  std::string name;  // "outrider-drafter"
  std::string what;  // for people
  const ServerFlags& flags;
  Node& node;
  RpcService& service;  // the node's own, beside that of its cache
  MetricRegistry& metrics;
  // The largest request that the model can call for.
  int max_receive_bytes = RpcServer::Options().max_receive_bytes;
  int64_t max_calls = 0;             // that the node takes at the same time
  std::chrono::seconds max_pass{0};  // 0: a pass may take any time
};

// Serves until a termination signal, then drains. Prints one line with the
// address when it serves: "NAME listening on HOST:PORT ...".
//
// SIGTERM: health turns NOT_SERVING and Describe UNAVAILABLE, so coordinators
// bring no new sessions; those that run are served until no call has come for a
// while, at most --drain-seconds. SIGINT waits for calls in flight alone. A
// second signal ends the process at once. UNAVAILABLE: the device was lost,
// which ends it too. A pass that hangs ends the process (HangWatch), as nothing
// in it can end in order any more.
absl::Status ServeNode(const ServedNode& served);

// What --check-config checks: flags, addresses, TLS files, and the files of the
// model, which is not loaded, each and as they belong together. `check_weights`
// checks the weights of a directory, and the device and number type that they
// are for; null for drafting by n-grams, which needs none.
absl::Status CheckNodeConfig(
    const NodeFlags& flags,
    absl::Status (*check_weights)(const CheckpointOptions& options));

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_SERVE_NODE_H_
