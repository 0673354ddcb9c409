// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_RPC_SERVICE_H_
#define OUTRIDER_CORE_RPC_RPC_SERVICE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/rpc/server_call.h"
#include "core/rpc/status_convert.h"

namespace outrider {

// A method and what handles its calls, on a thread of the server's queue. The
// handler may throw as long as it has neither ended the call nor handed it on,
// nor changed what other calls use: then the call alone ends.
struct RpcMethod {
  std::string path;  // "/outrider.v1.DrafterService/Draft"
  std::function<void(ServerCall& call)> handle;
  // Its requests are of a few bytes, and are not read behind those of others.
  bool is_small = false;
};
inline constexpr size_t kMostSmallBytes = 8 << 10;  // of such a request

inline RpcMethod Small(RpcMethod method) {
  method.is_small = true;
  return method;
}

// What a server serves. Thread-safe.
class RpcService {
 public:
  virtual ~RpcService() = default;
  virtual std::vector<RpcMethod> Methods() = 0;
};

// `handle` is a function of ServerCall& and the request, which it gets where
// ServerCall::Parse has no objection.
template <typename Request, typename Handle>
RpcMethod MethodOf(absl::string_view service, absl::string_view name,
                   Handle handle) {
  const auto parse_and_handle = [handle = std::move(handle)](ServerCall& call) {
    Request request;
    const absl::Status parsed = call.Parse(request);
    if (!parsed.ok()) return call.Finish(ToGrpcStatus(parsed));
    handle(call, std::move(request));
  };
  return {absl::StrCat("/", service, "/", name), parse_and_handle};
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_RPC_SERVICE_H_
