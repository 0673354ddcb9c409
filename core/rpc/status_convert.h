// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_STATUS_CONVERT_H_
#define OUTRIDER_CORE_RPC_STATUS_CONVERT_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace outrider {

// The codes are the same on both sides.
inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}
inline absl::Status FromGrpcStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_STATUS_CONVERT_H_
