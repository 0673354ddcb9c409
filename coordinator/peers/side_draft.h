// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_SIDE_DRAFT_H_
#define OUTRIDER_COORDINATOR_PEERS_SIDE_DRAFT_H_

#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/peers/node_stub.h"
#include "coordinator/round/stopwatch.h"
#include "core/base/cancellation.h"
#include "core/base/child_cancellation.h"
#include "core/base/side_task.h"

namespace outrider {

// A call under way that has a drafter take in a session's text, or draft what
// may follow it, while the session goes on. It does not touch the session:
// whoever owns it takes the reply in between two rounds. Stop or Wait must have
// been awaited, unless it is done, before this object goes. The stub must
// outlive it.
class SideDraft {
 public:
  SideDraft(DraftStub& stub, DraftCall call)
      : call_(std::move(call)),
        task_(Time(stub, call_, cancellation_, seconds_)) {}

  bool is_done() const { return task_.is_done(); }
  const DraftCall& call() const { return call_; }
  // Call this once, when it is done; then seconds() says how long it took.
  absl::StatusOr<DraftReply> TakeReply() { return task_.Take(); }
  double seconds() const { return seconds_; }

  // Gives the call up, where it still runs, and waits for its end.
  Task<void> Stop() {
    cancellation_.Cancel();
    co_await task_.Join();
  }
  // Waits for its end, which a session that is cancelled brings about.
  Task<void> Wait(Cancellation& session) {
    const CancellationLink link(session, cancellation_);
    co_await task_.Join();
  }

 private:
  static Task<absl::StatusOr<DraftReply>> Time(DraftStub& stub,
                                               const DraftCall& call,
                                               Cancellation& cancellation,
                                               double& seconds) {
    const Stopwatch watch;
    absl::StatusOr<DraftReply> reply = co_await stub.Draft(call, cancellation);
    seconds = watch.seconds();
    co_return reply;
  }

  const DraftCall call_;
  double seconds_ = 0;
  Cancellation cancellation_;
  SideTask<absl::StatusOr<DraftReply>> task_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_SIDE_DRAFT_H_
