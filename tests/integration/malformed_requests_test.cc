// SPDX-License-Identifier: Apache-2.0
// Bytes that are no message, and methods that are none.
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <string>

#include "core/rpc/status_convert.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;

// What a unary call of `method` with this request ends with.
absl::Status Call(const std::string& address, const std::string& method,
                  const std::string& request) {
  grpc::GenericStub stub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  const grpc::Slice slice(request);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method,
                                          grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  return FromGrpcStatus(status);
}

TEST(MalformedRequestsTest, BytesThatAreNoMessageAreAnInvalidArgument) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  const std::string garbage = "\xff\xff\xff\xff";
  const auto is_explained = StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("cannot be parsed"));
  EXPECT_THAT(Call(cluster.verifier().address(),
                   "/outrider.v1.VerifierService/Verify", garbage),
              is_explained);
  EXPECT_THAT(Call(cluster.drafter().address(),
                   "/outrider.v1.DrafterService/Draft", garbage),
              is_explained);
  EXPECT_THAT(Call(cluster.server().address(),
                   "/outrider.v1.GenerationService/Generate", garbage),
              is_explained);
}

TEST(MalformedRequestsTest, AMethodThatThereIsNotStaysUnimplemented) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  EXPECT_THAT(Call(cluster.verifier().address(),
                   "/outrider.v1.VerifierService/Judge", ""),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(Call(cluster.verifier().address(),
                   "/outrider.v1.DrafterService/Describe", ""),
              StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace outrider::testing
