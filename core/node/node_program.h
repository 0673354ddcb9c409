// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_PROGRAM_H_
#define OUTRIDER_CORE_NODE_NODE_PROGRAM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/node/load_model.h"
#include "core/node/node.h"
#include "core/node/node_flags.h"
#include "core/rpc/rpc_service.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// What makes a program a drafter or a verifier; the rest is the same.
struct NodeProgram {
  std::string role;    // "drafter": the program is outrider-drafter
  std::string method;  // the call that runs the model: "Draft"
  std::string about;   // for --help
  std::string listen;  // by default
  std::string example;
  std::string version;
  // Flags of its own.
  std::function<void(CLI::App&, NodeFlags&)> add_flags = {};
  // Whether these go together. INVALID_ARGUMENT says which do not.
  std::function<absl::Status(const NodeFlags&)> check_flags = {};
  // What --check-config checks a directory's weights by, and what is to be made
  // of them; null where it needs none.
  using WeightsCheck = absl::Status (*)(const CheckpointOptions& options);
  std::function<WeightsCheck()> weights_check = {};
  std::function<absl::StatusOr<LoadedModel>(const NodeFlags&)> load = {};
  // What --measure does; the model's KV blocks are not set up.
  std::function<absl::Status(const NodeFlags&, LoadedModel&)> measure = {};
  std::function<std::unique_ptr<RpcService>(Node&, const NodeDescription&)>
      make_service = {};
  // The largest request that the model described can call for.
  std::function<int(const NodeDescription&)> max_request_bytes = {};
};

// The whole of main: parses the flags, and serves, measures or checks. The
// exit status.
int RunNodeProgram(const NodeProgram& program, int argc, char** argv);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_PROGRAM_H_
