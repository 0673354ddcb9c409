// SPDX-License-Identifier: Apache-2.0
#include "core/node/local_node.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/check.h"
#include "core/wire/message_limits.h"

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
  const MessageLimits limits = LimitsOf(description);
  auto server =
      RpcServer::Start({.listen = options.listen,
                        .max_receive_bytes = std::max(limits.draft_request,
                                                      limits.verify_request)},
                       {service_.get(), &node_.cache_service()}, queue_);
  OUTRIDER_CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  server_->SetServing(true);
}

LocalNode::~LocalNode() { server_->Shutdown(std::chrono::seconds(0)); }

}  // namespace outrider
