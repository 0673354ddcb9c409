// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_

#include <algorithm>
#include <memory>
#include <optional>

#include "coordinator/peers/node_stub.h"
#include "coordinator/peers/side_draft.h"
#include "coordinator/round/draft_client.h"
#include "core/wire/node_calls.h"

namespace outrider {

// Drafts from one drafter node: makes the header from the session's mirror,
// sends what is missing after a miss, checks the reply. It keeps nothing
// between calls. A session has one for each drafter that it comes to, as it
// asks through its own stub (SessionDrafter).
class NodeDraftClient final : public DraftClient {
 public:
  struct Options {
    // Positions that the drafter can attend over; a longer session gets no
    // drafts.
    int context_length = 0;
    int max_draft_tokens = kDefaultMaxDraftTokens;  // that it may be asked for
    int max_outcomes = 0;  // of drafts in flight that it drafts for
    DraftOptions drafting = {};
  };

  // How long a draft may get.
  struct Length {
    int num_tokens = 0;  // at most
    // Where an unsure drafter is to end; nothing: as the options say.
    std::optional<double> min_draft_probability = {};
  };

  // What is asked for while drafts are being verified.
  struct AskedAhead {
    Length length = {};    // of each draft
    int max_outcomes = 0;  // that are drafted for
    double acceptance = 0;
  };

  NodeDraftClient(DraftStub& stub, const Options& options)
      : stub_(stub), options_(options) {}

  // Whether the drafter can attend over the session's text and one token more.
  bool Reaches(const Session& session) const {
    return session.length() < options_.context_length;
  }
  // How many drafts it may be asked for after the session's text, of so many
  // that are wanted.
  int MostDrafts(const Session& session, int num_tokens) const {
    return std::min({num_tokens, options_.max_draft_tokens,
                     options_.context_length - session.length()});
  }
  // Whether the drafter lacks so much of the text that a round should not wait
  // until it has taken that in: all of it, or a good deal.
  static bool LacksMuch(Session& session);

  // An empty draft where a miss shows that the drafter lacks much. ABORTED: it
  // lost the session again and again.
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session, Length length);
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    return Propose(session, Length{.num_tokens = num_tokens});
  }
  void DraftAhead(Session& /*session*/, const Draft& /*in_flight*/) override {}
  void Learn(const RoundStats& /*round*/) override {}

  // Sends what the drafter lacks, without waiting for the answer: Fill has it.
  std::unique_ptr<SideDraft> Fill(Session& session);
  // Takes in the answer of a fill that is done, and adds what it took to
  // `link`. ABORTED: the drafter has lost the session; the mirror knows.
  absl::Status TakeIn(SideDraft& fill, Session& session,
                      RoundStats::Link& link);

  // Asks for drafts of what may follow once `in_flight` is verified, without
  // waiting for them. Null where the drafter cannot do that, or the text's end
  // is near.
  std::unique_ptr<SideDraft> AskAhead(Session& session, const Draft& in_flight,
                                      const AskedAhead& asked);
  // Takes in the answer, which is there, once the verdict is committed, and
  // adds what it took to `link`. ABORTED: the drafter has lost the session.
  absl::StatusOr<DraftReply> TakeAhead(SideDraft& ahead, Session& session,
                                       RoundStats::Link& link);

 private:
  DraftCall MakeCall(Session& session, const Length& length) const;
  // All but header and number of tokens.
  DraftCall MakeCallFor(const Session& session, const Length& length) const;
  // Takes in what the reply says of the drafter's cache. False: a miss.
  static absl::StatusOr<bool> Read(const DraftCall& call,
                                   const DraftReply& reply, Session& session,
                                   RoundStats::Link& link);

  DraftStub& stub_;
  const Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_NODE_DRAFT_CLIENT_H_
