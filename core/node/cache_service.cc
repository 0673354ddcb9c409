// SPDX-License-Identifier: Apache-2.0
#include "core/node/cache_service.h"

#include <utility>

#include "core/node/model_reactor.h"
#include "core/wire/convert.h"

namespace outrider {

CacheServiceImpl::CacheServiceImpl(Engine engine, ModelThread& model_thread)
    : engine_(std::move(engine)), model_thread_(model_thread) {}

grpc::ServerUnaryReactor* CacheServiceImpl::Truncate(
    grpc::CallbackServerContext* context, const v1::TruncateRequest* request,
    v1::TruncateResponse* response) {
  const absl::StatusOr<RequestHeader> header = FromProto(*request);
  if (!header.ok()) return FinishNow(context, header.status());
  return RunOnModelThread(context, model_thread_, NodeCall::kCache,
                          [this, header = *header, response] {
                            response->set_applied(engine_.truncate(
                                header, header.delta.keep_length));
                            return absl::OkStatus();
                          });
}

grpc::ServerUnaryReactor* CacheServiceImpl::Release(
    grpc::CallbackServerContext* context, const v1::ReleaseRequest* request,
    v1::ReleaseResponse* response) {
  const absl::StatusOr<RequestHeader> header = FromProto(*request);
  if (!header.ok()) return FinishNow(context, header.status());
  return RunOnModelThread(context, model_thread_, NodeCall::kCache,
                          [this, header = *header, response] {
                            response->set_applied(engine_.release(header));
                            return absl::OkStatus();
                          });
}

}  // namespace outrider
