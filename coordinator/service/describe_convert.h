// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_DESCRIBE_CONVERT_H_
#define OUTRIDER_COORDINATOR_SERVICE_DESCRIBE_CONVERT_H_

#include "coordinator/pool/node_pool.h"
#include "outrider/v1/generation.pb.h"

namespace outrider {

v1::GenerationServiceDescribeResponse ToProto(const NodePool::Overview& nodes);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_DESCRIBE_CONVERT_H_
