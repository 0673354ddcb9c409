// SPDX-License-Identifier: Apache-2.0
// Every message of a stream says where in the continuation it stands.
#include <chrono>
#include <memory>

#include "core/rpc/channel.h"
#include "gtest/gtest.h"
#include "outrider/v1/generation.grpc.pb.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

class StreamIndexTest : public ::testing::Test {
 protected:
  StreamIndexTest()
      : cluster_(SmallCluster()),
        stub_(v1::GenerationService::NewStub(
            MakeChannel(cluster_.server().address()))) {
    request_.mutable_tokens()->add_ids(5);
    request_.set_max_tokens(40);
    request_.set_seed(3);
    request_.set_num_speculative_tokens(4);
  }

  // Runs the request, whose stream begins after `num_delivered` tokens.
  void ExpectEveryIndex(uint32_t num_delivered) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    const auto reader = stub_->Generate(&context, request_);
    uint32_t next_index = num_delivered;
    v1::GenerateResponse message;
    bool is_finished = false;
    while (reader->Read(&message)) {
      EXPECT_EQ(message.first_index(), next_index);
      next_index += message.tokens_size();
      if (message.has_start()) start_ = message.start();
      is_finished = message.has_finish();
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(is_finished);
    EXPECT_EQ(next_index, 40u);
  }

  InProcessCluster cluster_;
  std::unique_ptr<v1::GenerationService::Stub> stub_;
  v1::GenerateRequest request_;
  v1::GenerationStart start_;
};

TEST_F(StreamIndexTest, CountsTheTokensBeforeEachMessageToTheLast) {
  ASSERT_TRUE(cluster_.WaitUntilReady());
  ExpectEveryIndex(0);
}

TEST_F(StreamIndexTest, GoesOnAfterTheTokensDelivered) {
  ASSERT_TRUE(cluster_.WaitUntilReady());
  ExpectEveryIndex(0);
  for (const uint32_t id : {4, 5, 6}) request_.mutable_delivered()->add_ids(id);
  *request_.mutable_model() = start_.model();
  ExpectEveryIndex(3);
}

}  // namespace
}  // namespace outrider::testing
