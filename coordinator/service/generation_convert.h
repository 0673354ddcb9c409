// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GENERATION_CONVERT_H_
#define OUTRIDER_COORDINATOR_SERVICE_GENERATION_CONVERT_H_

#include "coordinator/pool/node_pool.h"
#include "coordinator/service/generation.h"
#include "outrider/v1/generation.pb.h"

namespace outrider {

// What a generation produces, as messages of its stream.
v1::GenerateResponse ToProto(const GenerationEvent& event);
v1::GenerationFinish ToProto(const GenerationEnd& end);
v1::GenerationServiceDescribeResponse ToProto(const NodePool::Overview& nodes);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GENERATION_CONVERT_H_
