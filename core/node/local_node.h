// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_LOCAL_NODE_H_
#define OUTRIDER_CORE_NODE_LOCAL_NODE_H_

#include <functional>
#include <memory>
#include <string>

#include "core/engine/batch_scheduler.h"
#include "core/node/node.h"
#include "core/rpc/server.h"

namespace outrider {

// A node with a server of its own inside a process that has other things to do:
// a test's or a benchmark's.
class LocalNode {
 public:
  using MakeService = std::function<std::unique_ptr<RpcService>(Node&)>;

  struct Options {
    std::string listen = "127.0.0.1:0";
    BatchScheduler::Options scheduling = {.sessions = {.num_blocks = 4096}};
  };

  // Sets up the model's KV blocks; neither that nor listening may fail.
  LocalNode(std::unique_ptr<CausalLm> model, const NodeDescription& description,
            const MakeService& make_service, const Options& options);
  // Ends as a process that is killed: calls in flight are broken off.
  ~LocalNode();
  LocalNode(const LocalNode&) = delete;
  LocalNode& operator=(const LocalNode&) = delete;

  Node& node() { return node_; }
  NodeCounters& counters() { return node_.counters(); }
  const std::string& address() const { return server_->address(); }
  // Sessions that have a cache here.
  int num_sessions() const { return node_.engine_metrics().num_sessions; }

 private:
  CallQueue queue_{CallQueue::WithStandby()};
  Node node_;
  const std::unique_ptr<RpcService> service_;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_LOCAL_NODE_H_
