// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_NODE_VERIFY_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_NODE_VERIFY_CLIENT_H_

#include "coordinator/peers/node_stub.h"
#include "coordinator/round/verify_client.h"
#include "core/wire/reply_codec.h"

namespace outrider {

// Scores drafts on one verifier node: makes the header from the session's
// mirror, sends what is missing after a miss (with the same drafts, hence the
// same coins), and checks the reply. Stateless but for the format.
class NodeVerifyClient final : public VerifyClient {
 public:
  explicit NodeVerifyClient(VerifyStub& stub,
                            ReplyFormat format = ReplyFormat::kFull)
      : stub_(stub), format_(format), codec_(CodecOf(format)) {}

  int MostDrafts(const Session& session) const override {
    return stub_.MostDrafts(session.length());
  }
  Task<absl::StatusOr<ScoredDraft>> Score(Session& session,
                                          Draft& draft) override;

 private:
  VerifyCall MakeCall(Session& session, const Draft& draft) const;

  VerifyStub& stub_;
  const ReplyFormat format_;
  const ReplyCodec& codec_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_NODE_VERIFY_CLIENT_H_
