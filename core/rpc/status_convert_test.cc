// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/status_convert.h"

#include <chrono>
#include <optional>
#include <string>

#include "core/base/error_reason.h"
#include "core/base/node_drains.h"
#include "core/base/retry_delay.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

const absl::Status kFull = absl::ResourceExhaustedError("the queue is full");

// A refusal with one detail, as another implementation may send it.
grpc::Status WithDetail(const google::protobuf::Message& detail) {
  google::rpc::Status details;
  details.add_details()->PackFrom(detail);
  return grpc::Status(grpc::RESOURCE_EXHAUSTED, "full",
                      details.SerializeAsString());
}

TEST(StatusConvertTest, ARetryDelayTravelsThereAndBack) {
  const absl::Status sent = WithRetryDelay(kFull, milliseconds(1250));
  const absl::Status received = FromGrpcStatus(ToGrpcStatus(sent));
  EXPECT_EQ(received, sent);
  EXPECT_THAT(RetryDelayOf(received), Optional(Eq(milliseconds(1250))));
}

TEST(StatusConvertTest, TheDetailsAreThoseThatAnyClientReads) {
  const grpc::Status sent =
      ToGrpcStatus(WithRetryDelay(kFull, milliseconds(1250)));
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(sent.error_details()));
  EXPECT_EQ(details.code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(details.message(), "the queue is full");
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(),
            "type.googleapis.com/google.rpc.RetryInfo");
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(0).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 250'000'000);
}

TEST(StatusConvertTest, AReasonIsToldToWhoCallsAndBelievedOfNoNode) {
  const grpc::Status sent = ToGrpcStatus(
      WithRetryDelay(WithErrorReason(absl::InternalError("failed"), "POISON"),
                     milliseconds(1250)));
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(sent.error_details()));
  EXPECT_EQ(details.code(), grpc::INTERNAL);
  ASSERT_EQ(details.details_size(), 2);
  EXPECT_EQ(details.details(1).type_url(),
            "type.googleapis.com/google.rpc.ErrorInfo");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(1).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "POISON");
  EXPECT_EQ(info.domain(), "outrider");
  EXPECT_TRUE(info.metadata().empty());
  const absl::Status received = FromGrpcStatus(sent);
  EXPECT_THAT(ErrorReasonOf(received), Eq(std::nullopt));
  EXPECT_THAT(RetryDelayOf(received), Optional(Eq(milliseconds(1250))));
}

TEST(StatusConvertTest, AReasonIsBelievedOfACoordinator) {
  const absl::Status sent = WithRetryDelay(
      WithErrorReason(absl::InternalError("failed"), kPoisonReason),
      milliseconds(1250));
  const absl::Status received = FromCoordinatorStatus(ToGrpcStatus(sent));
  EXPECT_EQ(received, sent);
  EXPECT_THAT(ErrorReasonOf(received), Optional(Eq(kPoisonReason)));
  EXPECT_EQ(FromCoordinatorStatus(grpc::Status::OK), absl::OkStatus());
  EXPECT_EQ(FromCoordinatorStatus(ToGrpcStatus(kFull)), kFull);
}

TEST(StatusConvertTest, ThatANodeDrainsIsBelievedOfIt) {
  EXPECT_TRUE(IsNodeDrains(FromGrpcStatus(ToGrpcStatus(NodeDrainsError()))));
  const absl::Status lost = absl::UnavailableError("the connection broke");
  EXPECT_FALSE(IsNodeDrains(FromGrpcStatus(ToGrpcStatus(lost))));
  const absl::Status failed =
      WithErrorReason(absl::InternalError("failed"), kNodeDrainsReason);
  EXPECT_FALSE(IsNodeDrains(FromGrpcStatus(ToGrpcStatus(failed))));
}

TEST(StatusConvertTest, WhatBelongsToAReasonGoesWithIt) {
  const grpc::Status sent = ToGrpcStatus(WithErrorMetadata(
      AtField("top_k", absl::InvalidArgumentError("wrong")), "most", "7"));
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(sent.error_details()));
  google::rpc::ErrorInfo info;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), kInvalidValueReason);
  EXPECT_THAT(info.metadata(),
              UnorderedElementsAre(Pair("field", "top_k"), Pair("most", "7")));
  EXPECT_THAT(ErrorMetadataOf(FromGrpcStatus(sent)), IsEmpty());
  EXPECT_THAT(ErrorMetadataOf(FromCoordinatorStatus(sent)),
              UnorderedElementsAre(Pair("field", "top_k"), Pair("most", "7")));
}

TEST(StatusConvertTest, WithoutADelayOrAReasonThereAreNoDetails) {
  EXPECT_THAT(ToGrpcStatus(kFull).error_details(), IsEmpty());
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(kFull)), kFull);
  EXPECT_EQ(FromGrpcStatus(grpc::Status::OK), absl::OkStatus());
}

TEST(StatusConvertTest, AMessageThatIsTooLargeIsNoLackOfRoom) {
  const grpc::Status refused(
      grpc::RESOURCE_EXHAUSTED,
      "Received message larger than max (1538000 vs. 1048576)");
  const absl::Status status = FromGrpcStatus(refused);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "a message has more bytes than its receiver accepts: Received "
            "message larger than max (1538000 vs. 1048576)");
  EXPECT_TRUE(IsMessageTooLarge(status));
  // A peer may say the same, in its own words.
  EXPECT_FALSE(IsMessageTooLarge(FromGrpcStatus(
      grpc::Status(grpc::FAILED_PRECONDITION, std::string(status.message())))));
}

TEST(StatusConvertTest, DetailsThatAreNotUnderstoodAreLeftOut) {
  google::rpc::RetryInfo negative, overlong;
  negative.mutable_retry_delay()->set_seconds(-1);
  overlong.mutable_retry_delay()->set_seconds(1LL << 60);
  for (const grpc::Status& status :
       {grpc::Status(grpc::RESOURCE_EXHAUSTED, "full", "\xff not a message"),
        WithDetail(google::rpc::Status()), WithDetail(negative),
        WithDetail(overlong)}) {
    EXPECT_EQ(FromGrpcStatus(status), absl::ResourceExhaustedError("full"));
  }
}

TEST(StatusConvertTest, ADelayOfAnyLengthCanBeAddedToAClocksTime) {
  google::rpc::RetryInfo longest;
  // The most that the format allows: ten thousand years.
  longest.mutable_retry_delay()->set_seconds(315'576'000'000);
  const auto delay = RetryDelayOf(FromGrpcStatus(WithDetail(longest)));
  ASSERT_TRUE(delay.has_value());
  EXPECT_EQ(*delay, std::chrono::hours(30 * 365 * 24));
  const auto now = std::chrono::steady_clock::now();
  EXPECT_GT(now + *delay, now);
}

}  // namespace
}  // namespace outrider
