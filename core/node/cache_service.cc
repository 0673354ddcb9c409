// SPDX-License-Identifier: Apache-2.0
#include "core/node/cache_service.h"

#include "core/rpc/status_convert.h"
#include "core/wire/convert.h"
#include "outrider/v1/cache.grpc.pb.h"

namespace outrider {
namespace {

// Does `apply` to the session that the request names.
template <typename Response, typename Request, typename Apply>
void Advise(NodeCounters& counters, ServerCall& call, const Request& request,
            Apply apply) {
  // What this throws is its handler's, and nothing was counted yet.
  const absl::StatusOr<RequestHeader> header = FromProto(request);
  counters.Started();
  Response response;
  if (header.ok()) response.set_applied(apply(*header));
  counters.Finished(NodeCall::kCache, header.status().code(), 0);
  if (header.ok()) {
    call.Reply(response);
  } else {
    call.Finish(ToGrpcStatus(header.status()));
  }
}

}  // namespace

std::vector<RpcMethod> CacheServiceImpl::Methods() {
  const char* const service = v1::CacheService::service_full_name();
  const auto truncate = [this](const RequestHeader& header) {
    return engine_.Truncate(header, header.delta.keep_length);
  };
  const auto release = [this](const RequestHeader& header) {
    suspects_.Released(header.session);
    return engine_.Release(header);
  };
  return {Small(MethodOf<v1::TruncateRequest>(
              service, "Truncate",
              [=, this](ServerCall& call, const v1::TruncateRequest& request) {
                Advise<v1::TruncateResponse>(counters_, call, request,
                                             truncate);
              })),
          Small(MethodOf<v1::ReleaseRequest>(
              service, "Release",
              [=, this](ServerCall& call, const v1::ReleaseRequest& request) {
                Advise<v1::ReleaseResponse>(counters_, call, request, release);
              }))};
}

}  // namespace outrider
