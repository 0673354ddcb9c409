// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_NODE_RELEASES_H_
#define OUTRIDER_COORDINATOR_NODES_NODE_RELEASES_H_

#include <chrono>
#include <type_traits>
#include <utility>

#include "coordinator/nodes/node.h"
#include "coordinator/nodes/waiting_room.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/task.h"
#include "core/session/cache_delta.h"

namespace outrider {

// Tells nodes of sessions that have ended, while nobody waits for it, and then
// the waiting room that their verifier has room. Thread-safe.
class NodeReleases {
 public:
  // The room must outlive it.
  explicit NodeReleases(WaitingRoom& room) : room_(room) {}
  NodeReleases(const NodeReleases&) = delete;
  // Waits a moment for nodes to be told, then gives up on the rest.
  ~NodeReleases() {
    const auto patience =
        std::chrono::steady_clock::now() + std::chrono::seconds(1);
    {
      MutexLock lock(mu_);
      while (num_running_ > 0 && ended_.WaitUntil(mu_, patience)) {
      }
    }
    closing_.Cancel();
    MutexLock lock(mu_);
    while (num_running_ > 0) ended_.Wait(mu_);
  }

  // Leaves the node once it is told that the session of `header` has ended.
  template <typename NodeType>
  void Release(Seat<NodeType> seat, RequestHeader header) {
    {
      MutexLock lock(mu_);
      ++num_running_;
    }
    StartDetached(Tell(std::move(seat), std::move(header)));
  }

 private:
  template <typename NodeType>
  Task<void> Tell(Seat<NodeType> seat, RequestHeader header) {
    const NodeType* const node = seat.get();
    ++seat->link.num_ended;
    co_await seat->cache->Release(std::move(header), closing_);
    --seat->link.num_ended;
    seat.reset();
    if constexpr (std::is_same_v<NodeType, VerifierNode>) room_.Call(node);
    MutexLock lock(mu_);  // the last use of this object
    --num_running_;
    ended_.NotifyAll();
  }

  WaitingRoom& room_;
  Cancellation closing_;
  Mutex mu_;
  CondVar ended_;
  int num_running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_NODE_RELEASES_H_
