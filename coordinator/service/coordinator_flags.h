// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_COORDINATOR_FLAGS_H_
#define OUTRIDER_COORDINATOR_SERVICE_COORDINATOR_FLAGS_H_

#include <algorithm>
#include <string>

#include "coordinator/pool/node_pool_options.h"
#include "coordinator/service/generation_service.h"
#include "core/base/available_cores.h"
#include "core/rpc/server.h"
#include "core/rpc/server_flags.h"

// CLI11's, by name only: its header is a large one.
namespace CLI {
class App;
}  // namespace CLI

namespace outrider {

// What the command line of outrider-coordinator says; libraries know no flags.
struct CoordinatorFlags {
  std::string tokenizer = {};
  bool require_drafter = false;
  int resolve_seconds = 30;
  int draft_timeout_ms = 2000;
  int verify_timeout_ms = 30000;
  int slow_client_seconds = 60;
  int max_connection_age_seconds = 0;
  // Half the cores, at most 8: rounds are short, and each further thread that
  // polls costs the others wake-ups.
  int num_threads = std::clamp(AvailableCores() / 2, 1, 8);
  NodePool::Options nodes = {};
  ServerFlags server = {.rpc = {.listen = "127.0.0.1:7000"},
                        .drain_seconds = 30};
  GenerationServiceImpl::Options service = {};
};

// Parsing refuses addresses of nodes that nobody could call, too. `flags` must
// outlive it.
void AddCoordinatorFlags(CLI::App& app, CoordinatorFlags& flags);

// What they say of the parts of the program. The nodes' credentials are read
// from the TLS files, which the parser has checked.
NodePoolOptions NodeOptionsOf(const CoordinatorFlags& flags);
GenerationServiceImpl::Options ServiceOptionsOf(const CoordinatorFlags& flags);
RpcServer::Options RpcOptionsOf(const CoordinatorFlags& flags);
// "demo-target" of "models/demo-target/".
std::string ModelNameOf(const CoordinatorFlags& flags);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_COORDINATOR_FLAGS_H_
