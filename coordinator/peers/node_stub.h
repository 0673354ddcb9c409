// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_NODE_STUB_H_
#define OUTRIDER_COORDINATOR_PEERS_NODE_STUB_H_

#include <limits>

#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/wire/node_calls.h"

namespace outrider {

// Carries one call to one node: over gRPC in production, by a function call in
// tests. Deadlines are the implementation's. What the arguments refer to must
// outlive the task.
class DraftStub {
 public:
  virtual ~DraftStub() = default;
  virtual Task<absl::StatusOr<DraftReply>> Draft(
      const DraftCall& call, Cancellation& cancellation) = 0;
};

class VerifyStub {
 public:
  virtual ~VerifyStub() = default;
  // How many drafts a call may have after a text of so many tokens.
  virtual int MostDrafts(int /*text_length*/) const {
    return std::numeric_limits<int>::max();
  }
  virtual Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, Cancellation& cancellation) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_NODE_STUB_H_
