// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_READ_REPLY_H_
#define OUTRIDER_CORE_WIRE_READ_REPLY_H_

#include "absl/status/statusor.h"
#include "core/wire/node_calls.h"
#include "outrider/v1/drafter.pb.h"
#include "outrider/v1/verifier.pb.h"

namespace outrider {

// What a node's response says to the call that it answers, as whoever carries
// it reads it. INTERNAL where it is malformed, is not what was asked for, or
// speaks of tokens beyond the `vocab_size` that the node described: that is a
// failure of the node's, and says nothing against the request, which another
// may answer.
absl::StatusOr<VerifyReply> ReadReply(v1::VerifyResponse response,
                                      const VerifyCall& call, int vocab_size);
absl::StatusOr<DraftReply> ReadReply(const v1::DraftResponse& response,
                                     const DraftCall& call, int vocab_size);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_READ_REPLY_H_
