// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GENERATION_CONVERT_H_
#define OUTRIDER_COORDINATOR_SERVICE_GENERATION_CONVERT_H_

#include "coordinator/pool/node_pool.h"
#include "coordinator/round/session.h"
#include "coordinator/service/generation.h"
#include "coordinator/service/generation_request.h"
#include "outrider/v1/generation.pb.h"

namespace outrider {

// The messages of a stream, in their order: the first one, one for each round,
// and the last one, of a session at its end.
v1::GenerateResponse FirstMessage(const GenerationRequest& request);
v1::GenerateResponse ToProto(const GenerationEvent& event);
v1::GenerateResponse LastMessage(const Session& session,
                                 const GenerationEnd& end);

v1::GenerationServiceDescribeResponse ToProto(const NodePool::Overview& nodes);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GENERATION_CONVERT_H_
