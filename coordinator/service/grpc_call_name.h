// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GRPC_CALL_NAME_H_
#define OUTRIDER_COORDINATOR_SERVICE_GRPC_CALL_NAME_H_

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "core/base/log.h"
#include "core/telemetry/trace_context.h"

namespace outrider {

// How a call is named in logs, here and elsewhere.
struct CallName {
  std::string request_id = {};
  std::optional<TraceContext> trace = {};  // our span, below the caller's

  // Takes the names that the client gives, or makes new ones.
  static CallName Of(const grpc::ServerContextBase& context);
  LogFields Fields() const;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GRPC_CALL_NAME_H_
