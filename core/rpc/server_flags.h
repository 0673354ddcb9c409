// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_SERVER_FLAGS_H_
#define OUTRIDER_CORE_RPC_SERVER_FLAGS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/rpc/server.h"
#include "core/telemetry/http_endpoint.h"
#include "core/telemetry/metric_registry.h"

// CLI11's, by name only: its header is a large one.
namespace CLI {
class App;
}  // namespace CLI

namespace outrider {

// The flags that all three servers share.
struct ServerFlags {
  RpcServer::Options rpc = {};
  int drain_seconds = 5;
  // How long a CallQueue asks before it sleeps.
  int spin_us = 0;
  std::string metrics_listen = {};  // empty: no HTTP
  bool log_json = false;
  bool check_config = false;
};

// These are in groups of their own; flags that are added next are in "Options"
// unless they name one. Sets the layout of --help too. What ApplyServerFlags
// refuses, ParseFlags refuses.
void AddServerFlags(CLI::App& app, ServerFlags& flags);
void AddTlsFlags(CLI::App& app, TlsFiles& files);

// What can be known without listening: addresses and files. Sets the format of
// log lines. INVALID_ARGUMENT names the flag.
absl::Status ApplyServerFlags(const ServerFlags& flags);

// Serves /metrics, /health and /live where the flags say so; null otherwise.
// Prints "NAME metrics on HOST:PORT". Registry and server must outlive it.
absl::StatusOr<std::unique_ptr<HttpEndpoint>> StartHttpEndpoint(
    absl::string_view name, const ServerFlags& flags,
    const MetricRegistry& registry, const RpcServer& server);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SERVER_FLAGS_H_
