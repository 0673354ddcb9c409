// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODE_VERIFY_CLIENT_H_
#define OUTRIDER_COORDINATOR_NODE_VERIFY_CLIENT_H_

#include "coordinator/node_stub.h"
#include "coordinator/verify_client.h"

namespace outrider {

// Scores drafts on one verifier node: makes the header from the session's
// mirror, sends what is missing after a miss (with the same drafts, hence the
// same coins), and processes the raw rows of a FULL reply.
class NodeVerifyClient final : public VerifyClient {
 public:
  explicit NodeVerifyClient(VerifyStub& stub) : stub_(stub) {}

  Task<absl::StatusOr<std::vector<TargetRow>>> Score(
      Session& session, const Draft& draft) override;

 private:
  VerifyStub& stub_;
};

// Raw rows to target rows: processed like every row of this session, each with
// the support of the draft it judges; the last one has none.
absl::StatusOr<std::vector<TargetRow>> ProcessRows(const LogitRows& rows,
                                                   const Draft& draft,
                                                   Session& session);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODE_VERIFY_CLIENT_H_
