// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_draft_stub.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/channel.h"
#include "core/testing/status_matchers.h"
#include "core/wire/convert.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using testing::IsOk;
using testing::StatusIs;

constexpr SessionId kSession = {{1}};
constexpr Incarnation kIncarnation = {{2}};
constexpr milliseconds kTimeout(200);
constexpr milliseconds kSlow(250);  // longer than that

constexpr int kVocabSize = 10;

// Answers after kSlow, or only when it is let go.
class SlowDrafter final : public v1::DrafterService::Service {
 public:
  grpc::Status Draft(grpc::ServerContext* /*context*/,
                     const v1::DraftRequest* /*request*/,
                     v1::DraftResponse* response) override {
    is_held_.wait(true);
    std::this_thread::sleep_for(kSlow);
    ToProto(DraftReply{.header = {.session = kSession,
                                  .incarnation = kIncarnation,
                                  .step = 1},
                       .outcome = outrider::Draft{.tokens = {token_}}},
            *response);
    return grpc::Status::OK;
  }

  void set_token(TokenId token) { token_ = token; }
  void Hold() { is_held_ = true; }
  void LetGo() {
    is_held_ = false;
    is_held_.notify_all();
  }

 private:
  std::atomic<bool> is_held_ = false;
  std::atomic<TokenId> token_ = 7;
};

class GrpcDraftStubTest : public ::testing::Test {
 protected:
  GrpcDraftStubTest() {
    SetUpGrpc();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&drafter_);
    server_ = builder.BuildAndStart();
    stub_ = std::make_unique<GrpcDraftStub>(
        MakeChannel(absl::StrCat("127.0.0.1:", port)),
        GrpcDraftStub::Options{.queue = queue_,
                               .timeout = kTimeout,
                               .timeout_per_token = milliseconds(0)});
    stub_->set_vocab_size(kVocabSize);
  }

  absl::StatusOr<DraftReply> Draft() {
    std::promise<absl::StatusOr<DraftReply>> reply;
    StartDetached(Run(reply));
    return reply.get_future().get();
  }

  SlowDrafter drafter_;

 private:
  Task<void> Run(std::promise<absl::StatusOr<DraftReply>>& reply) {
    const DraftCall call = {.header = {.session = kSession, .step = 1},
                            .max_draft_tokens = 1};
    Cancellation cancellation;
    reply.set_value(co_await stub_->Draft(call, cancellation));
  }

  CallQueue queue_{/*num_threads=*/1};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<GrpcDraftStub> stub_;
};

TEST_F(GrpcDraftStubTest, NoDraftIsGivenUpOnceTheDrafterIsKnownToBeSlow) {
  drafter_.Hold();
  for (int i = 0; i < 3; ++i) {  // each limit is at least twice the one before
    EXPECT_THAT(Draft(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  }
  drafter_.LetGo();
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Draft(), IsOk());
}

TEST_F(GrpcDraftStubTest, AMalformedReplyIsTheDraftersFailure) {
  drafter_.set_token(kVocabSize);
  absl::StatusOr<DraftReply> reply = Draft();
  for (int i = 0; i < 4 && absl::IsDeadlineExceeded(reply.status()); ++i) {
    reply = Draft();
  }
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace outrider
