// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SHARED_STUBS_H_
#define OUTRIDER_COORDINATOR_NODES_SHARED_STUBS_H_

#include <chrono>

#include "absl/status/statusor.h"
#include "coordinator/peers/node_stub.h"
#include "core/base/cancellation.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/session/cache_delta.h"
#include "core/wire/node_calls.h"
#include "core/wire/node_description.h"

namespace outrider {

// A node as all of its sessions call it: over gRPC in production, in virtual
// time in a simulation. Thread-safe where sessions run on several threads.
class SharedVerifyStub {
 public:
  virtual ~SharedVerifyStub() = default;
  virtual Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, std::chrono::milliseconds timeout,
      Cancellation& cancellation) = 0;
  // How long a call may take that nobody else could answer.
  virtual std::chrono::milliseconds TimeoutOf(const VerifyCall& call) const = 0;
  // Asks for the node's one place for suspects: false where another has it.
  virtual Task<absl::StatusOr<bool>> Isolate(const SessionId& session,
                                             std::chrono::milliseconds timeout,
                                             Cancellation& cancellation) = 0;
  // Asks the node what it is.
  virtual Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation) = 0;
};

class SharedDraftStub : public DraftStub {
 public:
  virtual Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation) = 0;
};

// Gives a node's cache memory back early. Advisory: a failure is nobody's
// problem, as the node's lease on the session runs out by itself.
class CacheStub {
 public:
  virtual ~CacheStub() = default;
  // Session, incarnation and step of `header` count. Without an incarnation,
  // the node releases an opening that was given up before its answer.
  virtual Task<void> Release(RequestHeader header,
                             Cancellation& cancellation) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SHARED_STUBS_H_
