// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/malformed_requests.h"

#include <grpcpp/support/server_interceptor.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace outrider {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerInterceptorFactoryInterface;
using grpc::experimental::ServerRpcInfo;

// Sees one call. A request that could not be parsed is a null message, and no
// method runs for it. A method that the server does not have gets no message.
class MalformedRequestInterceptor final : public Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_MESSAGE)) {
      is_unparsed_ = methods->GetRecvMessage() == nullptr;
    }
    if (is_unparsed_ && methods->QueryInterceptionHookPoint(
                            InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
          status.error_message().empty()) {
        methods->ModifySendStatus(
            {grpc::StatusCode::INVALID_ARGUMENT,
             "the request is not a message of this method's type: its bytes "
             "cannot be parsed"});
      }
    }
    methods->Proceed();
  }

 private:
  // gRPC orders its calls, which the thread sanitizer cannot see.
  std::atomic<bool> is_unparsed_ = false;
};

class Factory final : public ServerInterceptorFactoryInterface {
 public:
  Interceptor* CreateServerInterceptor(ServerRpcInfo* /*info*/) override {
    return new MalformedRequestInterceptor;  // gRPC owns it
  }
};

}  // namespace

void ExplainMalformedRequests(grpc::ServerBuilder& builder) {
  std::vector<std::unique_ptr<ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<Factory>());
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace outrider
