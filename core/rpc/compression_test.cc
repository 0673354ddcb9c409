// SPDX-License-Identifier: Apache-2.0
// Messages that are small on the wire, and large once they are inflated.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <memory>
#include <string>

#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

constexpr size_t kInflated = 64 << 20;
constexpr char kCheck[] = "/grpc.health.v1.Health/Check";

// On the wire they have a thousandth of that.
grpc::ByteBuffer Zeros(size_t bytes) {
  const grpc::Slice slice(std::string(bytes, '\0'));
  return {&slice, 1};
}

struct Answer {
  grpc::Status status;
  size_t bytes = 0;
};

Answer Ask(const std::shared_ptr<grpc::Channel>& channel, size_t bytes,
           grpc_compression_algorithm algorithm) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(60));
  context.set_compression_algorithm(algorithm);
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, kCheck, Zeros(bytes), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  Answer answer;
  call->Finish(&response, &answer.status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  if (response.Valid()) answer.bytes = response.Length();
  return answer;
}

TEST(CompressionTest, ACompressedRequestIsRefusedBeforeItIsInflated) {
  CallQueue queue(/*num_threads=*/1);
  const auto server = RpcServer::Start({.listen = "127.0.0.1:0"}, {}, queue);
  ASSERT_THAT(server, testing::IsOk());
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  const auto channel = grpc::CreateCustomChannel(
      (*server)->address(), grpc::InsecureChannelCredentials(), arguments);
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    const grpc::Status status = Ask(channel, kInflated, algorithm).status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_THAT(status.error_message(), HasSubstr("is disabled"));
  }
  EXPECT_TRUE(Ask(channel, 0, GRPC_COMPRESS_NONE).status.ok());
}

// Whatever it is asked, its answer is the same.
class ZerosService final : public grpc::CallbackGenericService {
 public:
  explicit ZerosService(grpc_compression_algorithm algorithm)
      : algorithm_(algorithm) {}

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor() { StartWriteAndFinish(&zeros_, {}, grpc::Status::OK); }
    void OnDone() override { delete this; }

   private:
    const grpc::ByteBuffer zeros_ = Zeros(kInflated);
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    context->set_compression_algorithm(algorithm_);
    return new Reactor;
  }
  const grpc_compression_algorithm algorithm_;
};

// A client's call may be over before gRPC objects to its headers: the message
// is then as it came.
TEST(CompressionTest, ACompressedReplyIsNotInflated) {
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    ZerosService service(algorithm);
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&service);
    builder.SetMaxSendMessageSize(-1);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    const auto server = builder.BuildAndStart();
    const auto channel = MakeChannel("127.0.0.1:" + std::to_string(port),
                                     {.max_receive_bytes = -1});
    EXPECT_LT(Ask(channel, 0, GRPC_COMPRESS_NONE).bytes, kInflated / 100);
  }
}

}  // namespace
}  // namespace outrider
