// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_DIALOGUE_H_
#define OUTRIDER_CORE_TESTING_DIALOGUE_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <memory>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace outrider::testing {

// A stream that lasts: its client has sent an empty message, and does not say
// that nothing else will come. It has no deadline, as who is to end it should.
template <typename Request, typename Response>
class Dialogue {
 public:
  Dialogue(const std::shared_ptr<grpc::Channel>& channel,
           const std::string& method)
      : stub_(channel) {
    context_.set_wait_for_ready(true);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    EXPECT_TRUE(Next());
    call_->Write({}, nullptr);
    EXPECT_TRUE(Next());
  }
  Dialogue(const Dialogue&) = delete;
  ~Dialogue() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
  }

  // The next message; nothing once the stream has ended.
  std::optional<Response> Read() {
    Response response;
    call_->Read(&response, nullptr);
    if (!Next()) return std::nullopt;
    return response;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::TemplatedGenericStub<Request, Response> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> call_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_DIALOGUE_H_
