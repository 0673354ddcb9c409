// SPDX-License-Identifier: Apache-2.0
#include "core/node/serve_node.h"

#include <chrono>
#include <iostream>
#include <memory>

#include "core/base/status_macros.h"
#include "core/rpc/server.h"

namespace outrider {

absl::Status ServeNode(absl::string_view name, absl::string_view what,
                       const NodeFlags& flags,
                       const std::vector<grpc::Service*>& services) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                            RpcServer::Start(flags.server, services));
  server->SetServing(true);
  std::cout << name << " listening on " << server->address() << " (" << what
            << ")" << std::endl;
  while (!RpcServer::WaitForTermination(std::chrono::hours(1))) {
  }
  server->Shutdown(std::chrono::seconds(flags.drain_seconds));
  return absl::OkStatus();
}

}  // namespace outrider
