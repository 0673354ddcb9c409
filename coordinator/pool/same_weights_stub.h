// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_SAME_WEIGHTS_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_SAME_WEIGHTS_STUB_H_

#include <functional>
#include <string>

#include "coordinator/peers/node_stub.h"
#include "core/base/session_id.h"
#include "core/wire/node_description.h"

namespace outrider {

// Decorator of one session's verifier: two models never meet in a session
// (faults.md rule 17). A node that gives the session a second life may have
// been restarted, with other weights; it is asked what it is before its rows
// count.
class SameWeightsStub final : public VerifyStub {
 public:
  struct Options {
    VerifyStub& node;
    // What the node is now.
    std::function<Task<absl::StatusOr<NodeDescription>>(Cancellation&)>
        describe = {};
    std::string weights_hash = {};  // the session's
  };

  explicit SameWeightsStub(Options options) : options_(std::move(options)) {}

  // ABORTED, beside the node's own failures: its weights have changed.
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation& cancellation) override;

 private:
  const Options options_;
  Incarnation life_ = {};  // none before the first reply
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_SAME_WEIGHTS_STUB_H_
