// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_CONVERT_H_
#define OUTRIDER_CORE_WIRE_CONVERT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/model/causal_lm.h"
#include "core/wire/node_calls.h"
#include "outrider/v1/cache.pb.h"
#include "outrider/v1/drafter.pb.h"
#include "outrider/v1/verifier.pb.h"

namespace outrider {

// Proto to domain and back. FromProto validates the form of every field
// (INVALID_ARGUMENT names the first that is wrong); what depends on a model or
// a cache is checked by the engines.

v1::DraftRequest ToProto(const DraftCall& call);
absl::StatusOr<DraftCall> FromProto(const v1::DraftRequest& request);
void ToProto(const DraftReply& reply, v1::DraftResponse& response);
// `call` is what is being answered, `vocab_size` bounds ids.
absl::StatusOr<DraftReply> FromProto(const v1::DraftResponse& response,
                                     const DraftCall& call, int vocab_size);

v1::VerifyRequest ToProto(const VerifyCall& call);
absl::StatusOr<VerifyCall> FromProto(const v1::VerifyRequest& request);
void ToProto(const VerifyReply& reply, v1::VerifyResponse& response);
// `call` is what is being answered.
absl::StatusOr<VerifyReply> FromProto(v1::VerifyResponse response,
                                      const VerifyCall& call);

// Session, incarnation and step of an advisory call; a Release may come without
// incarnation.
absl::StatusOr<RequestHeader> FromProto(const v1::TruncateRequest& request);
absl::StatusOr<RequestHeader> FromProto(const v1::ReleaseRequest& request);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_CONVERT_H_
