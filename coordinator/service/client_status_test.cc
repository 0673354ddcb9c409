// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/client_status.h"

#include <chrono>

#include "coordinator/nodes/refusal_reasons.h"
#include "coordinator/nodes/session_errors.h"
#include "core/base/error_reason.h"
#include "core/base/retry_delay.h"
#include "core/rpc/status_convert.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::StatusIs;

constexpr char kPeer[] = "10.0.0.7:7002 said so";
// A resume without one of these is refused (generation_request.cc).
constexpr char kToResume[] =
    "the same request, the reported seed and model and the delivered tokens";

TEST(ClientStatusTest, WhatMayHaveTakenVerifiersDownIsNotToBeSentAgain) {
  EXPECT_THAT(ForClients(PoisonError()),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("should not be sent again or resumed")));
  EXPECT_EQ(ErrorReasonOf(ForClients(PoisonError())), kPoisonReason);
}

TEST(ClientStatusTest, ATextThatNoVerifierHasRoomForSaysHowMuchThereIs) {
  const absl::Status outgrown = OutgrownError(5000, 4096);
  EXPECT_THAT(ForClients(outgrown),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       std::string(outgrown.message())));
  EXPECT_EQ(ErrorReasonOf(ForClients(outgrown)), kOutOfKvMemoryReason);
  EXPECT_EQ(ErrorMetadataOf(ForClients(outgrown)).at("num_tokens"), "5000");
}

TEST(ClientStatusTest, AMessageThatIsTooLargeNamesWhatMakesItSmaller) {
  const absl::Status too_large = FromGrpcStatus(
      grpc::Status{grpc::StatusCode::RESOURCE_EXHAUSTED,
                   "Received message larger than max (5000000 vs. 4194304)"});
  ASSERT_TRUE(IsMessageTooLarge(too_large));
  EXPECT_THAT(ForClients(too_large),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("a message of this session has more bytes")));
  EXPECT_THAT(ForClients(too_large),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("draft_options.support_size")));
  EXPECT_EQ(ErrorReasonOf(ForClients(too_large)), kMessageTooLargeReason);
}

TEST(ClientStatusTest, WhatWentWellIsSaidAsItIs) {
  EXPECT_THAT(ForClients(absl::OkStatus()), IsOk());
}

TEST(ClientStatusTest, AStreamThatIsCancelledByADrainIsToBeResumedElsewhere) {
  EXPECT_THAT(ForClients(absl::CancelledError(kPeer)),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("this coordinator is shutting down"),
                             HasSubstr(kToResume))));
}

TEST(ClientStatusTest, AQueueThatIsFullSaysWhenToComeAgain) {
  const absl::Status told = ForClients(WithRetryDelay(
      absl::ResourceExhaustedError(kPeer), std::chrono::milliseconds(300)));
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kResourceExhausted,
                             HasSubstr("try again later")));
  EXPECT_EQ(RetryDelayOf(told), std::chrono::milliseconds(300));
}

TEST(ClientStatusTest, AVerifierWithoutRoomIsToBeAskedLaterWithoutAnHour) {
  const absl::Status told = ForClients(absl::ResourceExhaustedError(kPeer));
  EXPECT_THAT(told,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("resume later"), HasSubstr(kToResume))));
  EXPECT_EQ(RetryDelayOf(told), std::nullopt);
}

TEST(ClientStatusTest, AVerifierThatIsLostOrLateIsUnavailable) {
  for (const absl::Status& status :
       {absl::UnavailableError(kPeer), absl::DeadlineExceededError(kPeer)}) {
    EXPECT_THAT(ForClients(status),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("the verifier does not answer"),
                               HasSubstr(kToResume))));
  }
}

TEST(ClientStatusTest, AModelThatWasReplacedIsNamedAsWhatEndedTheStream) {
  EXPECT_THAT(ForClients(absl::AbortedError(kPeer)),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("was replaced by another one")));
}

TEST(ClientStatusTest, AnythingElseIsInternalAndTheLogSaysWhy) {
  for (const absl::Status& status :
       {absl::InternalError(kPeer), absl::InvalidArgumentError(kPeer),
        absl::FailedPreconditionError(kPeer), absl::UnknownError(kPeer)}) {
    EXPECT_THAT(ForClients(status),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("the coordinator's log says why")));
  }
}

TEST(ClientStatusTest, APeersOwnWordsAreNotPassedOn) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), kPeer);
    EXPECT_THAT(std::string(ForClients(status).message()),
                Not(HasSubstr(kPeer)));
  }
}

}  // namespace
}  // namespace outrider
