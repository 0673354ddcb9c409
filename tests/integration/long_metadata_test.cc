// SPDX-License-Identifier: Apache-2.0
// Calls with headers that are too long, beside others on the same connection.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include <memory>
#include <string>

#include "core/rpc/status_convert.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "outrider/v1/cache.grpc.pb.h"
#include "outrider/v1/generation.grpc.pb.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;

v1::GenerateRequest RequestOf(int num_tokens) {
  v1::GenerateRequest request;
  for (const uint32_t id : {1, 2, 3}) request.mutable_tokens()->add_ids(id);
  request.set_max_tokens(static_cast<uint32_t>(num_tokens));
  request.set_temperature(0);
  return request;
}

TEST(LongMetadataTest, ACallWithTooMuchIsRefusedAndItsNeighbourGoesOn) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  const auto stub = v1::GenerationService::NewStub(grpc::CreateChannel(
      cluster.server().address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto neighbour = stub->Generate(&context, RequestOf(400));
  v1::GenerateResponse response;
  ASSERT_TRUE(neighbour->Read(&response));
  for (const size_t num_bytes : {9'000, 100'000}) {
    grpc::ClientContext long_context;
    long_context.AddMetadata("x-long", std::string(num_bytes, 'a'));
    const auto refused = stub->Generate(&long_context, RequestOf(4));
    EXPECT_FALSE(refused->Read(&response));
    EXPECT_THAT(FromGrpcStatus(refused->Finish()),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("bytes of metadata")));
  }
  while (neighbour->Read(&response)) {
  }
  EXPECT_THAT(FromGrpcStatus(neighbour->Finish()), IsOk());
}

TEST(LongMetadataTest, ANodeRefusesItTooBeforeAnyWork) {
  InProcessCluster cluster(SmallCluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  const auto stub = v1::CacheService::NewStub(grpc::CreateChannel(
      cluster.verifier().address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("x-long", std::string(9'000, 'a'));
  v1::ReleaseRequest request;
  request.set_session_id(std::string(16, 's'));
  request.set_incarnation(std::string(16, 'i'));
  request.set_step(1);
  v1::ReleaseResponse response;
  EXPECT_THAT(FromGrpcStatus(stub->Release(&context, request, &response)),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace outrider::testing
