// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_HANG_WATCH_H_
#define OUTRIDER_CORE_NODE_HANG_WATCH_H_

#include <chrono>
#include <thread>

#include "core/node/node.h"
#include "core/rpc/server.h"

namespace outrider {

// Ends the process, from a thread of its own, where a pass of the model takes
// longer than `max_pass`: the device hangs, and no thread can be awaited that
// waits for it. Health turns NOT_SERVING a second before, the log says so, and
// the status is 1. Where the pass ends within that second the node serves on.
// While the process is stopped no pass takes time. Must end before the node and
// the server do.
class HangWatch {
 public:
  // A `max_pass` of 0: a pass may take any time, and there is no thread.
  HangWatch(Node& node, RpcServer& server, std::chrono::seconds max_pass);

  // Waits until no pass runs, where passes are watched: whoever destroys the
  // engine next does not wait for one that hangs.
  void AwaitPass() const;

 private:
  using Clock = std::chrono::steady_clock;

  void EndUnlessOver(Clock::time_point start);
  bool WantsToServe() const;

  Node& node_;
  RpcServer& server_;
  const std::chrono::seconds max_pass_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_HANG_WATCH_H_
