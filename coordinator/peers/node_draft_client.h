// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_

#include <memory>
#include <optional>

#include "coordinator/peers/cache_fill.h"
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
    int max_draft_tokens = kDefaultMaxDraftTokens;  // that it may be asked for
    DraftOptions drafting = {};
  };

  NodeDraftClient(DraftStub& stub, const Options& options)
      : stub_(stub), options_(options) {}

  // Whether the drafter can attend over the session's text and one token more.
  bool Reaches(const Session& session) const {
    return session.length() < options_.context_length;
  }
  // Whether the drafter lacks so much of the text that a round should not wait
  // until it has taken that in: all of it, or a good deal.
  static bool LacksMuch(Session& session);

  // An empty draft where a miss shows that the drafter lacks much. ABORTED: it
  // lost the session again and again.
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override;
  void Learn(const RoundStats& /*round*/) override {}

  // Sends what the drafter lacks, without waiting for the answer: Fill has it.
  std::unique_ptr<CacheFill> Fill(Session& session);
  // Takes in the answer of a fill that is done, and adds what it took to
  // `link`. ABORTED: the drafter has lost the session; the mirror knows.
  absl::Status TakeIn(CacheFill& fill, Session& session,
                      RoundStats::Link& link);

 private:
  DraftCall MakeCall(Session& session, int num_tokens) const;
  // The draft in the reply; nothing where that is a miss.
  static absl::StatusOr<std::optional<Draft>> Read(const DraftCall& call,
                                                   DraftReply reply,
                                                   Session& session,
                                                   RoundStats::Link& link);

  DraftStub& stub_;
  const Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_
