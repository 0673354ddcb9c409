// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SAME_MODEL_STUB_H_
#define OUTRIDER_COORDINATOR_NODES_SAME_MODEL_STUB_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "coordinator/peers/node_stub.h"
#include "core/base/session_id.h"
#include "core/wire/model_identity.h"
#include "core/wire/node_description.h"

namespace outrider {

// Decorator of one session's verifier: all tokens of a session come from one
// model, which is the one that it was promised. A node may have been restarted
// with another model since it was asked what it is. It then opens the session
// anew, and each reply to an opening says which model computed it. An older
// node does not say so; it is asked what it is before its reply counts. One
// opening needs no question: the very first call of a session without tokens,
// if it did not fail.
class SameModelStub final : public VerifyStub {
 public:
  struct Options {
    VerifyStub& node;
    // What the node is now, where its replies do not say.
    std::function<Task<absl::StatusOr<NodeDescription>>(Cancellation&)>
        describe = {};
    // It is this one, and not the session's.
    std::function<void(const ModelIdentity&)> on_other = {};
    ModelIdentity model = {};  // the session's
  };

  explicit SameModelStub(Options options) : options_(std::move(options)) {}

  // ABORTED, beside the node's own failures: its model is another one.
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation& cancellation) override;

  // ABORTED, and `on_other` is told: the node is this, and not the session's.
  absl::Status Check(const ModelIdentity& model, const VerifyCall& call) const;

  // The session goes on with these kernels, as no others are left.
  void Accept(const std::string& numerics) {
    options_.model.numerics = numerics;
  }

 private:
  Options options_;
  Incarnation life_ = {};    // none before the first reply
  bool has_failed_ = false;  // a call, after which the node may be another
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SAME_MODEL_STUB_H_
