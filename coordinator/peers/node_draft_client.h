// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_

#include "coordinator/peers/node_stub.h"
#include "coordinator/round/draft_client.h"
#include "core/wire/node_calls.h"

namespace outrider {

// Drafts from one drafter node: makes the header from the session's mirror,
// sends what is missing after a miss, checks the reply. Stateless but for its
// options; one serves all sessions of a node.
class NodeDraftClient final : public DraftClient {
 public:
  struct Options {
    // Positions that the drafter can attend over; a longer session gets no
    // drafts.
    int context_length = 0;
    DraftOptions drafting = {};
  };

  NodeDraftClient(DraftStub& stub, const Options& options)
      : stub_(stub), options_(options) {}

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override;

 private:
  DraftStub& stub_;
  const Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_
