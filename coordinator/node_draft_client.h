// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODE_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_NODE_DRAFT_CLIENT_H_

#include "coordinator/draft_client.h"
#include "coordinator/node_stub.h"

namespace outrider {

// Drafts from one drafter node: makes the header from the session's mirror,
// sends what is missing after a miss, checks the reply. Stateless but for its
// options; one serves all sessions of a node.
class NodeDraftClient final : public DraftClient {
 public:
  // `support_size` is N: the most tokens of a draft row.
  NodeDraftClient(DraftStub& stub, int support_size)
      : stub_(stub), support_size_(support_size) {}

  Task<absl::StatusOr<Draft>> Propose(Session& session,
                                      int num_tokens) override;

 private:
  DraftStub& stub_;
  const int support_size_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODE_DRAFT_CLIENT_H_
