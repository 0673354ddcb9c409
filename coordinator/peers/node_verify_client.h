// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_NODE_VERIFY_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_NODE_VERIFY_CLIENT_H_

#include "coordinator/control/run_length.h"
#include "coordinator/peers/node_stub.h"
#include "coordinator/round/verify_client.h"
#include "core/wire/reply_codec.h"

namespace outrider {

// Scores drafts on one verifier node: makes the header from the session's
// mirror, sends what is missing after a miss (with the same drafts, hence the
// same coins), and checks the reply. Where there is no draft and the verifier
// draws by itself, it may draw some tokens in a call. Stateless but for what
// calls take.
class NodeVerifyClient final : public VerifyClient {
 public:
  // `run` is this session's own; null: a token a call.
  explicit NodeVerifyClient(VerifyStub& stub,
                            ReplyFormat format = ReplyFormat::kFull,
                            RunLength* run = nullptr)
      : stub_(stub), format_(format), codec_(CodecOf(format)), run_(run) {}

  int MostDrafts(const Session& session) const override {
    return stub_.MostDrafts(session.length());
  }
  Task<absl::StatusOr<ScoredDraft>> Score(Session& session,
                                          Draft& draft) override;

 private:
  // How many tokens a call without drafts may draw.
  int NextRun(const Session& session) const;
  // How many may come after the first one of a call.
  int MostMore(Session& session, const Draft& draft) const;
  VerifyCall MakeCall(Session& session, const Draft& draft,
                      int most_more) const;

  VerifyStub& stub_;
  const ReplyFormat format_;
  const ReplyCodec& codec_;
  RunLength* const run_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_NODE_VERIFY_CLIENT_H_
