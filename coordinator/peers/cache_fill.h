// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_CACHE_FILL_H_
#define OUTRIDER_COORDINATOR_PEERS_CACHE_FILL_H_

#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/peers/node_stub.h"
#include "core/base/cancellation.h"
#include "core/base/side_task.h"

namespace outrider {

// A call under way that has a drafter take in a session's text, while the
// session goes on without drafts. It does not touch the session: whoever owns
// it takes the reply in between two rounds. Stop must have been awaited, unless
// it is done, before this object goes. The stub must outlive it.
class CacheFill {
 public:
  CacheFill(DraftStub& stub, DraftCall call)
      : call_(std::move(call)), task_(stub.Draft(call_, cancellation_)) {}

  bool is_done() const { return task_.is_done(); }
  const DraftCall& call() const { return call_; }
  // Call this once, when the fill is done.
  absl::StatusOr<DraftReply> TakeReply() { return task_.Take(); }

  // Gives the call up, where it still runs, and waits for its end.
  Task<void> Stop() {
    cancellation_.Cancel();
    co_await task_.Join();
  }

 private:
  const DraftCall call_;
  Cancellation cancellation_;
  SideTask<absl::StatusOr<DraftReply>> task_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_CACHE_FILL_H_
