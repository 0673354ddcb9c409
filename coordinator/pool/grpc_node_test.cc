// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_node.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/pool/grpc_draft_stub.h"
#include "core/base/mutex.h"
#include "core/rpc/deadline.h"
#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using testing::IsOk;

// Has a vocabulary of 256k, whose rows are beyond what a channel accepts first,
// and notes over which connection it was asked.
class LargeDrafter final : public v1::DrafterService::Service {
 public:
  grpc::Status Describe(grpc::ServerContext* context,
                        const v1::DrafterServiceDescribeRequest* /*request*/,
                        v1::DrafterServiceDescribeResponse* response) override {
    {
      MutexLock lock(mu_);
      peers_.push_back(context->peer());
    }
    response->mutable_node()->set_vocab_size(256 << 10);
    response->mutable_node()->set_context_length(4096);
    response->mutable_node()->set_max_draft_tokens(16);
    response->mutable_node()->set_max_outcomes(16);
    return grpc::Status::OK;
  }

  std::vector<std::string> peers() const {
    MutexLock lock(mu_);
    return peers_;
  }

 private:
  mutable Mutex mu_;
  std::vector<std::string> peers_ ABSL_GUARDED_BY(mu_);
};

Task<void> Ask(GrpcDraftStub& stub,
               std::promise<absl::StatusOr<NodeDescription>>& reply) {
  Cancellation cancellation;
  reply.set_value(
      co_await stub.Describe(std::chrono::seconds(10), cancellation));
}

absl::StatusOr<NodeDescription> Describe(GrpcDraftStub& stub) {
  std::promise<absl::StatusOr<NodeDescription>> reply;
  StartDetached(Ask(stub, reply));
  return reply.get_future().get();
}

TEST(GrpcNodeTest, AllCallsGoOverTheChannelThatTakesTheModelsReplies) {
  SetUpGrpc();
  LargeDrafter drafter;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&drafter);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  CallQueue queue(/*num_threads=*/1);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  const ConnectNode connect = [&](int max_receive_bytes) {
    channels.push_back(MakeChannel(absl::StrCat("127.0.0.1:", port),
                                   {.max_receive_bytes = max_receive_bytes}));
    return channels.back();
  };
  GrpcDraftStub stub(connect(ChannelOptions().max_receive_bytes),
                     {.queue = queue,
                      .timeout = std::chrono::seconds(10),
                      .timeout_per_token = std::chrono::milliseconds(0),
                      .connect = connect});
  EXPECT_FALSE(stub.IsConnected());
  for (int i = 0; i < 3; ++i) ASSERT_THAT(Describe(stub), IsOk());

  ASSERT_EQ(channels.size(), 2);
  const std::vector<std::string> peers = drafter.peers();
  ASSERT_EQ(peers.size(), 3);
  EXPECT_NE(peers[0], peers[1]);
  EXPECT_EQ(peers[1], peers[2]);
  EXPECT_TRUE(stub.IsConnected());

  // It is the connection of the calls that tells whether the node is there.
  server->Shutdown(DeadlineAfter(std::chrono::milliseconds(0)));
  ASSERT_TRUE(channels.back()->WaitForStateChange(
      GRPC_CHANNEL_READY, DeadlineAfter(std::chrono::seconds(10))));
  EXPECT_FALSE(stub.IsConnected());
}

}  // namespace
}  // namespace outrider
