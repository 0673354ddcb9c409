// SPDX-License-Identifier: Apache-2.0
#include "core/node/cache_service.h"

#include "core/rpc/status_convert.h"
#include "core/wire/convert.h"

namespace outrider {
namespace {

// Does `apply` to the session that the request names.
template <typename Request, typename Response, typename Apply>
auto Advise(NodeCounters& counters, grpc::CallbackServerContext* context,
            const Request& request, Response& response, Apply apply) {
  counters.Started();
  const absl::StatusOr<RequestHeader> header = FromProto(request);
  if (header.ok()) response.set_applied(apply(*header));
  counters.Finished(NodeCall::kCache, header.status().code(), 0);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(header.status()));
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* CacheServiceImpl::Truncate(
    grpc::CallbackServerContext* context, const v1::TruncateRequest* request,
    v1::TruncateResponse* response) {
  return Advise(counters_, context, *request, *response,
                [this](const RequestHeader& header) {
                  return engine_.Truncate(header, header.delta.keep_length);
                });
}

grpc::ServerUnaryReactor* CacheServiceImpl::Release(
    grpc::CallbackServerContext* context, const v1::ReleaseRequest* request,
    v1::ReleaseResponse* response) {
  return Advise(
      counters_, context, *request, *response,
      [this](const RequestHeader& header) { return engine_.Release(header); });
}

}  // namespace outrider
