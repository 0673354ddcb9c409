// SPDX-License-Identifier: Apache-2.0
// Calls at a node, over gRPC: each that throws ends alone, and is counted; what
// opens a session is logged.
#include "core/node/node_call.h"

#include <google/protobuf/empty.pb.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/node/local_node.h"
#include "core/rpc/channel.h"
#include "core/rpc/deadline.h"
#include "core/testing/scripted_work.h"
#include "core/testing/table_lm.h"
#include "core/wire/node_calls.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "outrider/v1/verifier.pb.h"

namespace outrider {
namespace {

using ::outrider::testing::ScriptedWork;
using ::outrider::testing::TableLm;
using ::testing::HasSubstr;
using ::testing::Not;

// Answers each call with a miss, or a verdict, but for what it is told to do
// before.
struct ScriptedEngine {
  using Call = VerifyCall;
  using Reply = VerifyReply;

  absl::Status Check(const Call& /*call*/) const {
    if (on_check) on_check();
    return absl::OkStatus();
  }
  std::unique_ptr<Work> MakeWork(
      const Call& call, uint64_t digest, std::function<bool()> is_cancelled,
      std::function<void(absl::StatusOr<Reply>)> done) const {
    if (on_make) on_make();
    const auto answer = [this, done = std::move(done)](const Ending& ending) {
      if (!ending.status.ok()) return done(ending.status);
      Reply reply;
      if (misses) {
        reply.outcome = Miss{MissReason::kStale, 0};
      } else {
        reply.outcome = Verdict{};
      }
      done(std::move(reply));
    };
    return std::make_unique<ScriptedWork>(
        Work::Request{.header = call.header,
                      .content_digest = digest,
                      .is_cancelled = std::move(is_cancelled)},
        ScriptedWork::Script{.on_take =
                                 [this](const LogitRows&) {
                                   if (on_take) on_take();
                                 },
                             .on_finish = answer});
  }

  std::atomic<bool> misses = true;
  std::function<void()> on_check = {};
  std::function<void()> on_make = {};
  std::function<void()> on_take = {};
};

class ScriptedService final : public RpcService {
 public:
  ScriptedService(Node& node, const ScriptedEngine& engine)
      : node_(node), engine_(engine) {}
  std::vector<RpcMethod> Methods() override {
    return {MethodOf<v1::VerifyRequest>(
        "test.Scripted", "Verify",
        [this](ServerCall& call, const v1::VerifyRequest& request) {
          HandleCall<v1::VerifyResponse>(node_, engine_, call, request);
        })};
  }

 private:
  Node& node_;
  const ScriptedEngine& engine_;
};

class NodeCallTest : public ::testing::Test {
 protected:
  grpc::Status Verify() {
    grpc::TemplatedGenericStub<v1::VerifyRequest, v1::VerifyResponse> stub(
        MakeChannel(node_.address()));
    v1::VerifyRequest request;
    request.mutable_header()->set_session_id(SessionId::Random().ToBytes());
    request.mutable_header()->set_step(1);
    request.mutable_header()->mutable_cache_delta()->add_append_tokens(1);
    request.set_reply_format(v1::REPLY_FORMAT_TOKENS);
    request.mutable_sampling()->set_top_p(1);
    grpc::ClientContext context;
    context.AddMetadata("x-request-id", "one");
    context.set_deadline(DeadlineAfter(std::chrono::seconds(20)));
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, "/test.Scripted/Verify",
                                            request, &queue);
    call->StartCall();
    v1::VerifyResponse response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }
  // The status of a call while `hook` throws this; what is logged of it.
  template <typename Exception>
  grpc::Status Thrown(std::function<void()>& hook, const Exception& thrown,
                      std::string& log) {
    hook = [&thrown] { throw thrown; };
    ::testing::internal::CaptureStderr();
    const grpc::Status status = Verify();
    log = ::testing::internal::GetCapturedStderr();
    hook = {};
    return status;
  }

  ScriptedEngine engine_;
  LocalNode node_{std::make_unique<TableLm>(TableLm::Options{
                      .table = [](auto) { return std::vector<float>(4, 0.0f); },
                      .vocab_size = 4,
                      .context_length = 64}),
                  {.model_name = "m"},
                  [this](Node& node) {
                    return std::make_unique<ScriptedService>(node, engine_);
                  },
                  {}};
};

TEST_F(NodeCallTest, WhatIsThrownEndsTheCallAloneIsLoggedOnceAndCounted) {
  ASSERT_TRUE(Verify().ok());
  const NodeCounters& counters = node_.counters();
  int num_failed = 0;
  for (auto hook : {&ScriptedEngine::on_check, &ScriptedEngine::on_make,
                    &ScriptedEngine::on_take}) {
    std::string log;
    grpc::Status status =
        Thrown(engine_.*hook, std::runtime_error("out of luck"), log);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
    EXPECT_THAT(log, HasSubstr("/test.Scripted/Verify failed: INTERNAL"));
    EXPECT_EQ(log.find("out of luck"), log.rfind("out of luck")) << log;
    status = Thrown(engine_.*hook, std::bad_alloc(), log);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
    EXPECT_THAT(log, HasSubstr("std::bad_alloc"));
    EXPECT_TRUE(Verify().ok());
    num_failed += 2;
    EXPECT_EQ(
        counters.num_finished(NodeCall::kModel, absl::StatusCode::kInternal),
        num_failed);
    EXPECT_EQ(counters.num_running(), 0);
  }
}

TEST_F(NodeCallTest, OnlyWhatOpensASessionIsLoggedAsThat) {
  const auto log_of = [this] {
    ::testing::internal::CaptureStderr();
    Verify();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of(), Not(HasSubstr("session opened")));
  engine_.misses = false;
  EXPECT_THAT(log_of(), HasSubstr("session opened"));
  engine_.on_take = [] { throw std::runtime_error("out of luck"); };
  EXPECT_THAT(log_of(), Not(HasSubstr("session opened")));
}

}  // namespace
}  // namespace outrider
