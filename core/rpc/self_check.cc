// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/self_check.h"

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>

#include <future>
#include <string>

#include "core/rpc/deadline.h"

namespace outrider {
namespace {

// HealthCheckRequest{service: "liveness"}, HealthCheckResponse{SERVING}.
const char kRequest[] = "\x0a\x08liveness";
const char kServing[] = "\x08\x01";

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "";
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// What a thread of the queue is to handle as soon as one is free. It may be
// late, and so deletes itself.
class Echo final : public Completion {
 public:
  static std::future<void> Of(CallQueue& queue) {
    auto* const echo = new Echo;
    std::future<void> has_come = echo->has_come_.get_future();
    echo->Arm();
    echo->alarm_.Set(queue.queue(), gpr_inf_past(GPR_CLOCK_MONOTONIC), echo);
    return has_come;
  }

 private:
  void OnComplete(bool /*ok*/) override {
    has_come_.set_value();
    delete this;
  }

  std::promise<void> has_come_;
  grpc::Alarm alarm_;
};

}  // namespace

SelfCheck::SelfCheck(grpc::Server& server, CallQueue& queue)
    : queue_(queue),
      channel_(server.InProcessChannel(grpc::ChannelArguments())) {}

void SelfCheck::Stop() {
  MutexLock lock(mu_);
  is_stopped_ = true;
}

bool SelfCheck::Answers(std::chrono::milliseconds patience) {
  {
    MutexLock lock(mu_);
    if (!is_stopped_) return ServerAnswers(patience);
  }
  return Echo::Of(queue_).wait_for(patience) == std::future_status::ready;
}

bool SelfCheck::ServerAnswers(std::chrono::milliseconds patience) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(patience));
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  const grpc::Slice slice(kRequest);
  const grpc::ByteBuffer request(&slice, 1);
  const auto call = stub.PrepareUnaryCall(
      &context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && status.ok() && BytesOf(reply) == kServing;
}

}  // namespace outrider
