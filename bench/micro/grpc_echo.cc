// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/grpc_echo.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/rpc/channel.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/unary_call.h"

namespace outrider {
namespace {

// An echo's request begins with the size of its reply.
grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

grpc::ByteBuffer ReplyTo(const grpc::ByteBuffer& request) {
  grpc::Slice slice;
  OUTRIDER_CHECK(request.DumpToSingleSlice(&slice).ok());
  uint32_t size = 0;
  std::memcpy(&size, slice.begin(), sizeof(size));
  return ToBuffer(std::string(size, 'r'));
}

class CallbackEcho final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    class Reactor final : public grpc::ServerGenericBidiReactor {
     public:
      Reactor() { StartRead(&request_); }
      void OnReadDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::CANCELLED);
        reply_ = ReplyTo(request_);
        StartWriteAndFinish(&reply_, {}, grpc::Status::OK);
      }
      void OnDone() override { delete this; }

     private:
      grpc::ByteBuffer request_;
      grpc::ByteBuffer reply_;
    };
    return new Reactor;
  }
};

// One call of the completion-queue echo, from its arrival to its end.
class QueueCall {
 public:
  QueueCall(grpc::AsyncGenericService& service,
            grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue) {
    service_.RequestCall(&context_, &stream_, &queue_, &queue_, this);
  }

  // The next of its operations has ended.
  void Proceed(bool ok) {
    if (!ok || stage_ == Stage::kReply) {
      delete this;
    } else if (stage_ == Stage::kArrive) {
      new QueueCall(service_, queue_);
      stage_ = Stage::kRead;
      stream_.Read(&request_, this);
    } else {
      stage_ = Stage::kReply;
      stream_.WriteAndFinish(ReplyTo(request_), {}, grpc::Status::OK, this);
    }
  }

 private:
  enum class Stage { kArrive, kRead, kReply };

  grpc::AsyncGenericService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer request_;
  Stage stage_ = Stage::kArrive;
};

}  // namespace

Served ServeCallbackEcho(const std::string& listen) {
  struct Parts {
    CallbackEcho service;
    std::unique_ptr<grpc::Server> server;
  };
  auto parts = std::make_shared<Parts>();
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&parts->service);
  parts->server = builder.BuildAndStart();
  return {.address =
              IsUnixSocket(listen) ? listen : absl::StrCat("127.0.0.1:", port),
          .server = parts};
}

Served ServeQueueEcho(const std::string& listen) {
  struct Parts {
    grpc::AsyncGenericService service;
    std::unique_ptr<grpc::ServerCompletionQueue> queue;
    std::unique_ptr<grpc::Server> server;
    std::jthread thread;
  };
  auto parts = std::make_shared<Parts>();
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterAsyncGenericService(&parts->service);
  parts->queue = builder.AddCompletionQueue();
  parts->server = builder.BuildAndStart();
  new QueueCall(parts->service, *parts->queue);
  parts->thread = std::jthread([queue = parts->queue.get()] {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) static_cast<QueueCall*>(tag)->Proceed(ok);
  });
  return {.address =
              IsUnixSocket(listen) ? listen : absl::StrCat("127.0.0.1:", port),
          .server = parts};
}

EchoClient::EchoClient(const std::string& address, CallQueue& queue)
    : queue_(queue), stub_(MakeChannel(address)) {}

Task<void> EchoClient::Call(CallBytes bytes) {
  std::string message(std::max<size_t>(bytes.request, sizeof(uint32_t)), 'q');
  const auto reply_size = static_cast<uint32_t>(bytes.reply);
  std::memcpy(message.data(), &reply_size, sizeof(reply_size));
  const grpc::ByteBuffer request = ToBuffer(message);
  Cancellation none;
  const absl::StatusOr<grpc::ByteBuffer> reply =
      co_await CallUnary<grpc::ByteBuffer>(
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            return stub_.PrepareUnaryCall(context, "/outrider.Echo/Echo",
                                          request, queue);
          },
          {.queue = queue_,
           .deadline = std::chrono::seconds(60),
           .cancellation = none});
  OUTRIDER_CHECK(reply.ok()) << reply.status();
}

}  // namespace outrider
