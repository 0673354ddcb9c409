// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/health_service.h"

#include <memory>
#include <utility>

#include "grpc/health/v1/health.pb.h"

namespace outrider {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthCheckResponse ResponseOf(const std::map<std::string, bool>& serving,
                               const std::string& name) {
  HealthCheckResponse response;
  const auto found = serving.find(name);
  response.set_status(found == serving.end()
                          ? HealthCheckResponse::SERVICE_UNKNOWN
                      : found->second ? HealthCheckResponse::SERVING
                                      : HealthCheckResponse::NOT_SERVING);
  return response;
}

}  // namespace

// A call that is told of each change, the last one where there were several
// while it was being written to. Guarded by the service's lock.
class HealthService::Watch final : public ServerCall::Companion {
 public:
  Watch(HealthService& service, ServerCall& call, std::string name)
      : service_(service), call_(call), name_(std::move(name)) {}
  ~Watch() override {
    MutexLock lock(service_.mu_);
    service_.watches_.erase(this);
  }

  void Begin() {
    MutexLock lock(service_.mu_);
    service_.watches_.insert(this);
    is_writing_ = false;
    Proceed();
  }
  void OnWritten(bool ok) override {
    MutexLock lock(service_.mu_);
    is_writing_ = false;
    is_over_ = is_over_ || !ok;
    Proceed();
  }
  void OnCancelled() override {
    MutexLock lock(service_.mu_);
    is_over_ = true;
    Proceed();
  }

  // Writes what has not been told yet, and only then ends the call where the
  // service ends, unless it is being written to.
  void Proceed() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (is_writing_ || is_finished_) return;
    const HealthCheckResponse now = ResponseOf(service_.serving_, name_);
    if (!is_over_ && now.status() != told_) {
      told_ = now.status();
      is_writing_ = true;
      call_.Write(now);
    } else if (is_over_ || service_.is_ending_) {
      is_finished_ = true;
      call_.Finish({grpc::StatusCode::UNAVAILABLE, "the server shuts down"});
    }
  }

 private:
  HealthService& service_;
  ServerCall& call_;
  const std::string name_;
  HealthCheckResponse::ServingStatus told_ = HealthCheckResponse::UNKNOWN;
  bool is_writing_ = true;  // until it begins
  bool is_over_ = false;
  bool is_finished_ = false;
};

std::vector<RpcMethod> HealthService::Methods() {
  constexpr char kName[] = "grpc.health.v1.Health";
  return {Small(MethodOf<HealthCheckRequest>(
              kName, "Check",
              [this](ServerCall& call, const HealthCheckRequest& request) {
                HealthCheckResponse response;
                {
                  MutexLock lock(mu_);
                  response = ResponseOf(serving_, request.service());
                }
                if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
                  call.Finish({grpc::StatusCode::NOT_FOUND, "no such name"});
                } else {
                  call.Reply(response);
                }
              })),
          Small(MethodOf<HealthCheckRequest>(
              kName, "Watch",
              [this](ServerCall& call, const HealthCheckRequest& request) {
                auto watch =
                    std::make_unique<Watch>(*this, call, request.service());
                Watch* const begun = watch.get();
                call.Accompany(std::move(watch));
                begun->Begin();
              }))};
}

void HealthService::Set(const std::string& name, bool serving) {
  MutexLock lock(mu_);
  serving_[name] = serving;
  for (Watch* const watch : watches_) watch->Proceed();
}

void HealthService::EndWatches() {
  MutexLock lock(mu_);
  is_ending_ = true;
  for (Watch* const watch : watches_) watch->Proceed();
}

}  // namespace outrider
