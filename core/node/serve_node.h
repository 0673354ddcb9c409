// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_SERVE_NODE_H_
#define OUTRIDER_CORE_NODE_SERVE_NODE_H_

#include <grpcpp/impl/codegen/service_type.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/node/node_flags.h"

namespace outrider {

// Serves until a termination signal, then drains. Prints one line with the
// address when it serves: "NAME listening on HOST:PORT ...".
absl::Status ServeNode(absl::string_view name, absl::string_view what,
                       const NodeFlags& flags,
                       const std::vector<grpc::Service*>& services);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_SERVE_NODE_H_
