// SPDX-License-Identifier: Apache-2.0
// Requests that are larger, or of more parts, than any that is meant.
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "core/rpc/channel.h"
#include "core/rpc/parse_message.h"
#include "core/rpc/server.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "outrider/v1/verifier.pb.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;
using Echoed = google::rpc::Status;

// Sends back what it gets.
class EchoService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override {
    const auto echo = [](ServerCall& call, const Echoed& message) {
      call.Reply(message);
    };
    return {MethodOf<Echoed>("test.EchoService", "Echo", echo),
            Small(MethodOf<Echoed>("test.EchoService", "EchoSmall", echo))};
  }
};

class RequestSizesTest : public ::testing::Test {
 protected:
  // The bytes of the reply.
  absl::StatusOr<std::string> Call(const std::string& method,
                                   const std::string& request) {
    grpc::GenericStub stub(MakeChannel((*server_)->address()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    const grpc::Slice slice(request);
    grpc::CompletionQueue queue;
    const auto call =
        stub.PrepareUnaryCall(&context, "/test.EchoService/" + method,
                              grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    if (!status.ok()) return FromGrpcStatus(status);
    grpc::Slice bytes;
    EXPECT_TRUE(response.DumpToSingleSlice(&bytes).ok());
    return std::string(bytes.begin(), bytes.end());
  }
  int64_t NumUnread(UnreadReason reason) {
    return (*server_)->unread().NumOf(reason);
  }

  EchoService service_;
  CallQueue queue_{/*num_threads=*/1};
  absl::StatusOr<std::unique_ptr<RpcServer>> server_ =
      RpcServer::Start({.listen = "127.0.0.1:0", .max_receive_bytes = 8 << 20},
                       {&service_}, queue_);
};

std::string Repeated(int times, const std::string& bytes) {
  std::string all;
  for (int i = 0; i < times; ++i) all += bytes;
  return all;
}

TEST_F(RequestSizesTest, TooManyFieldsAreRefusedKnownOrNot) {
  const std::string known("\x1a\x00", 2);
  const std::string unknown("\x42\x00", 2);
  const auto are_too_many = StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("more than 16384 fields"));
  EXPECT_THAT(Call("Echo", Repeated(kMostFields, known)), IsOk());
  EXPECT_THAT(Call("Echo", Repeated(kMostFields, unknown)), IsOk());
  EXPECT_THAT(Call("Echo", Repeated(kMostFields + 1, known)), are_too_many);
  EXPECT_THAT(Call("Echo", Repeated(kMostFields + 1, unknown)), are_too_many);
  EXPECT_THAT(Call("Echo", Repeated(4 << 20, known).substr(0, (8 << 20) - 2)),
              are_too_many);
  Echoed one;
  one.add_details()->set_value("x");
  const std::string two = one.SerializeAsString();
  EXPECT_THAT(Call("Echo", Repeated(kMostFields / 2, two)), IsOk());
  EXPECT_THAT(Call("Echo", Repeated(kMostFields / 2 + 1, two)), are_too_many);
}

// Protobuf's parser would make a field of each before it refused.
TEST(ParseMessageTest, WhatTheCountFindsToBeNoMessageIsNotParsed) {
  // A header that ends where its cache delta begins; at the delta's first field
  // the count is over.
  const std::string bytes =
      std::string("\x0a\x05\x22\x83\x80\x80\x04\x0a\x01\x07") +
      Repeated(4 << 20, std::string("\x7a\x00", 2));
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer buffer(&slice, 1);
  v1::VerifyRequest request;
  EXPECT_THAT(ParseMessage(buffer, 16 << 20, request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cannot be parsed")));
  EXPECT_LT(request.SpaceUsedLong(), 4096);
}

// No service has them to count.
TEST_F(RequestSizesTest, WhatIsRefusedUnreadIsCounted) {
  EXPECT_THAT(Call("Echo", "\x0a"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Call("Nothing", ""), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(Call("Echo", ""), IsOk());
  EXPECT_EQ(NumUnread(UnreadReason::kMalformed), 1);
  EXPECT_EQ(NumUnread(UnreadReason::kMethod), 1);
  EXPECT_EQ(NumUnread(UnreadReason::kMetadata), 0);
  EXPECT_EQ(NumUnread(UnreadReason::kTurn), 0);
}

// A caller of another version is known by what it calls. Strangers choose the
// name, and its length.
TEST_F(RequestSizesTest, TheLogNamesTheMethodThatIsNotThere) {
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(Call("Nothing" + std::string(5000, 'x'), ""),
              StatusIs(absl::StatusCode::kUnimplemented));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("/test.EchoService/Nothingxxx"));
  EXPECT_LT(log.size(), 300u);
}

// A call whose request does not come.
struct StalledCall {
  StalledCall(const std::shared_ptr<grpc::Channel>& channel,
              grpc::CompletionQueue& queue)
      : call(grpc::GenericStub(channel).PrepareCall(
            &context, "/grpc.health.v1.Health/Check", &queue)) {
    call->StartCall(this);
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  grpc::Status status;
};

TEST_F(RequestSizesTest, WhoseRequestDoesNotComeIsCountedAndLogged) {
  constexpr int kMostReads = 16;  // of methods with small requests
  const auto channel = MakeChannel((*server_)->address());
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  std::deque<StalledCall> calls;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i <= kMostReads; ++i) {
    calls.emplace_back(channel, queue);
    ASSERT_TRUE(queue.Next(&tag, &ok));
  }
  for (StalledCall& one : calls) one.call->Finish(&one.status, &one);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(tag, &calls.front());
  EXPECT_EQ(NumUnread(UnreadReason::kTurn), 1);
  for (StalledCall& one : calls) one.context.TryCancel();
  for (int i = 0; i < kMostReads; ++i) ASSERT_TRUE(queue.Next(&tag, &ok));
  server_->reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("/grpc.health.v1.Health/Check was refused unread "
                        "(turn): RESOURCE_EXHAUSTED"));
}

TEST_F(RequestSizesTest, WhatIsUnknownIsNotKept) {
  Echoed message;
  message.set_message("known");
  message.add_details()->set_value("too");
  const std::string known = message.SerializeAsString();
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
      99, std::string(1 << 20, 'x'));
  auto& within = *message.mutable_details(0);
  within.GetReflection()->MutableUnknownFields(&within)->AddVarint(98, 5);
  EXPECT_EQ(Call("Echo", message.SerializeAsString()).value_or("refused"),
            known);
}

TEST_F(RequestSizesTest, AMethodWithSmallRequestsTakesNoLargeOnes) {
  Echoed message;
  message.set_message(std::string(kMostSmallBytes - 3, 'x'));
  const std::string most = message.SerializeAsString();
  ASSERT_EQ(most.size(), kMostSmallBytes);
  EXPECT_EQ(Call("EchoSmall", most).value_or("refused"), most);
  message.mutable_message()->push_back('x');
  const std::string more = message.SerializeAsString();
  EXPECT_THAT(Call("EchoSmall", more),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("has 8193 bytes")));
  EXPECT_EQ(Call("Echo", more).value_or("refused"), more);
}

}  // namespace
}  // namespace outrider
