// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_STATUS_CONVERT_H_
#define OUTRIDER_CORE_RPC_STATUS_CONVERT_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace outrider {

// Codes and messages are the same on both sides. The delay of
// core/base/retry_delay.h travels as google.rpc.RetryInfo in the status
// details, where any gRPC client finds it; more than thirty years are thirty,
// and details that are not understood are left out. The reason of
// core/base/error_reason.h goes out as google.rpc.ErrorInfo of the domain
// "outrider", with its metadata; only that of core/base/node_drains.h is taken
// in. A message that its receiver does not accept is FAILED_PRECONDITION, where
// gRPC says RESOURCE_EXHAUSTED: no waiting makes it smaller.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);
// The same for a client, which believes any reason of its coordinator, and the
// metadata.
absl::Status FromCoordinatorStatus(const grpc::Status& status);
// Whether it is that FAILED_PRECONDITION, and not one that a peer sent.
bool IsMessageTooLarge(const absl::Status& status);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_STATUS_CONVERT_H_
