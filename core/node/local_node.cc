// SPDX-License-Identifier: Apache-2.0
#include "core/node/local_node.h"

#include <chrono>
#include <utility>

#include "core/base/check.h"

namespace outrider {
namespace {

std::unique_ptr<CausalLm> WithBlocks(std::unique_ptr<CausalLm> model,
                                     int num_blocks) {
  const absl::Status status = model->AllocateKvBlocks(num_blocks);
  OUTRIDER_CHECK(status.ok()) << status;
  return model;
}

}  // namespace

LocalNode::LocalNode(std::unique_ptr<CausalLm> model,
                     const NodeDescription& description,
                     const MakeService& make_service, const Options& options)
    : node_(
          WithBlocks(std::move(model), options.scheduling.sessions.num_blocks),
          options.scheduling, description),
      service_(make_service(node_)) {
  auto server =
      RpcServer::Start({.listen = options.listen,
                        .max_receive_bytes = options.max_receive_bytes},
                       {service_.get(), &node_.cache_service()});
  OUTRIDER_CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  server_->SetServing(true);
}

LocalNode::~LocalNode() { server_->Shutdown(std::chrono::seconds(0)); }

}  // namespace outrider
