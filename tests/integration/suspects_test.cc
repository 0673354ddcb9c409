// SPDX-License-Identifier: Apache-2.0
// What a verifier says of itself to whoever opens a session, and its one place
// for suspects, as another coordinator's calls meet them.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include <chrono>
#include <memory>
#include <string>

#include "core/rpc/deadline.h"
#include "core/rpc/status_convert.h"
#include "core/testing/status_matchers.h"
#include "core/wire/convert.h"
#include "gtest/gtest.h"
#include "outrider/v1/cache.grpc.pb.h"
#include "outrider/v1/verifier.grpc.pb.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

class SuspectsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(cluster_.WaitUntilReady()); }

  absl::StatusOr<bool> Isolate(const std::string& session) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(std::chrono::seconds(20)));
    v1::IsolateRequest request;
    request.set_session_id(session);
    v1::IsolateResponse response;
    const grpc::Status status =
        verifier_->Isolate(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response.granted();
  }
  v1::VerifyResponse Open(const SessionId& session, uint64_t step) {
    return Verify(
        {.session = session, .step = step, .delta = {.append_tokens = {5}}});
  }
  v1::VerifyResponse Verify(const RequestHeader& header) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(std::chrono::seconds(20)));
    v1::VerifyResponse response;
    const grpc::Status status = verifier_->Verify(
        &context, ToProto(VerifyCall{.header = header, .prompt_length = 1}),
        &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  void Release(const SessionId& session) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(std::chrono::seconds(20)));
    v1::ReleaseRequest request;
    request.set_session_id(session.ToBytes());
    v1::ReleaseResponse response;
    EXPECT_TRUE(cache_->Release(&context, request, &response).ok());
  }

  InProcessCluster cluster_{SmallCluster()};
  const std::shared_ptr<grpc::Channel> channel_ = grpc::CreateChannel(
      cluster_.verifier().address(), grpc::InsecureChannelCredentials());
  const std::unique_ptr<v1::VerifierService::Stub> verifier_ =
      v1::VerifierService::NewStub(channel_);
  const std::unique_ptr<v1::CacheService::Stub> cache_ =
      v1::CacheService::NewStub(channel_);
  const SessionId one_ = SessionId::Random();
  const SessionId other_ = SessionId::Random();
};

TEST_F(SuspectsTest, AReplyToAnOpeningSaysWhatComputedIt) {
  const v1::VerifyResponse opened = Open(one_, /*step=*/1);
  ASSERT_TRUE(opened.header().has_model());
  EXPECT_EQ(FromProto(opened.header().model()),
            cluster_.pool().Describe().verifiers.at(0).identity());
  const auto life = Incarnation::FromBytes(opened.header().incarnation());
  const v1::VerifyResponse next =
      Verify({.session = one_,
              .incarnation = life,
              .step = 2,
              .delta = {.keep_length = 1, .append_tokens = {6}}});
  EXPECT_FALSE(next.has_miss());
  EXPECT_FALSE(next.header().has_model());
}

TEST_F(SuspectsTest, OneSuspectHasThePlaceUntilItsStepHasEnded) {
  EXPECT_TRUE(Isolate(one_.ToBytes()).value());
  EXPECT_FALSE(Isolate(other_.ToBytes()).value());
  Open(SessionId::Random(), /*step=*/1);  // no suspect
  EXPECT_FALSE(Isolate(other_.ToBytes()).value());
  Open(one_, /*step=*/1);
  EXPECT_TRUE(Isolate(other_.ToBytes()).value());
}

TEST_F(SuspectsTest, WhoFindsItTakenIsNotAnsweredAtOnce) {
  EXPECT_TRUE(Isolate(one_.ToBytes()).value());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(Isolate(other_.ToBytes()).value());
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(200));
}

TEST_F(SuspectsTest, ASuspectThatIsReleasedLeavesThePlace) {
  EXPECT_TRUE(Isolate(one_.ToBytes()).value());
  Release(one_);
  EXPECT_TRUE(Isolate(other_.ToBytes()).value());
}

TEST_F(SuspectsTest, ANameThatIsNoneIsRefused) {
  EXPECT_THAT(Isolate("short"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace outrider::testing
