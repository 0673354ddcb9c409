// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_SAME_MODEL_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_SAME_MODEL_STUB_H_

#include <functional>

#include "coordinator/peers/node_stub.h"
#include "core/base/session_id.h"
#include "core/wire/model_identity.h"
#include "core/wire/node_description.h"

namespace outrider {

// Decorator of one session's verifier: two models never meet in a session
// (faults.md rule 17). A node that gives the session a second life may have
// been restarted, with another model; it is asked what it is before its rows
// count.
class SameModelStub final : public VerifyStub {
 public:
  struct Options {
    VerifyStub& node;
    // What the node is now.
    std::function<Task<absl::StatusOr<NodeDescription>>(Cancellation&)>
        describe = {};
    ModelIdentity model = {};  // the session's
    Sameness sameness = Sameness::kLaw;
    // The text began elsewhere: the node is asked at the first life, too.
    bool is_resumed = false;
  };

  explicit SameModelStub(Options options) : options_(std::move(options)) {}

  // ABORTED, beside the node's own failures: its model is another one.
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation& cancellation) override;

 private:
  const Options options_;
  Incarnation life_ = {};  // none before the first reply
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_SAME_MODEL_STUB_H_
