// SPDX-License-Identifier: Apache-2.0
#include "core/node/serve_node.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/channel.h"
#include "core/telemetry/metric_registry.h"
#include "core/testing/dialogue.h"
#include "core/testing/lost_lm.h"
#include "core/testing/no_service.h"
#include "core/testing/scripted_work.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using ::outrider::testing::Dialogue;
using ::outrider::testing::IsOk;
using ::outrider::testing::LostLm;
using ::outrider::testing::NoService;
using ::outrider::testing::ScriptedWork;
using ::outrider::testing::StatusIs;

// A node that is served, on a thread that alone takes its signals.
class ServeNodeTest : public ::testing::Test {
 protected:
  ServeNodeTest()
      : flags_{.rpc = {.listen = absl::StrCat("unix:", ::testing::TempDir(),
                                              "/serve_node_", getpid())},
               .drain_seconds = 3600} {
    std::promise<void> blocked;
    thread_ = std::jthread([&] {
      RpcServer::BlockTerminationSignals();
      blocked.set_value();
      result_.set_value(ServeNode({.name = "a node",
                                   .what = "a test",
                                   .flags = flags_,
                                   .node = node_,
                                   .service = none_,
                                   .metrics = metrics_}));
    });
    blocked.get_future().wait();
  }
  absl::Status Result() { return end_.get(); }
  bool EndsWithin(std::chrono::seconds longest) {
    return end_.wait_for(longest) == std::future_status::ready;
  }
  void Signal(int signal) { pthread_kill(thread_.native_handle(), signal); }
  // A session has a call under way, by what a drain goes by.
  void BeginCall() { node_.counters().Started(); }
  void EndCall() {
    node_.counters().Finished(NodeCall::kModel, absl::StatusCode::kOk,
                              /*compute_seconds=*/0);
  }

  const ServerFlags flags_;
  Node node_{std::make_unique<LostLm>(),
             {.sessions = {.num_blocks = 4}},
             {.model_name = "m"}};
  NoService none_;
  MetricRegistry metrics_{{}};
  std::promise<absl::Status> result_;
  std::future<absl::Status> end_ = result_.get_future();
  std::jthread thread_;  // after what it uses
};

// They may all come by one connection, which holds back what is more.
TEST(NodeFlagsTest, ANodeTakesCallsOfItsQueueAndTwoOfEachSession) {
  NodeFlags flags;
  flags.scheduling.max_queue_length = 5;
  flags.scheduling.sessions.max_sessions = 100;
  EXPECT_EQ(flags.MaxCalls(), 205);
}

TEST_F(ServeNodeTest, ALostDeviceTurnsHealthAndEndsTheNode) {
  Dialogue<HealthCheckRequest, HealthCheckResponse> watch(
      MakeChannel(flags_.rpc.listen), "/grpc.health.v1.Health/Watch");
  std::optional<HealthCheckResponse> health;
  do {
    health = watch.Read();
    ASSERT_TRUE(health.has_value());
  } while (health->status() != HealthCheckResponse::SERVING);
  RequestHeader header = {.session = SessionId::Random(), .step = 1};
  header.delta.append_tokens = {1};
  node_.engine().Submit(std::make_unique<ScriptedWork>(
      Work::Request{.header = header}, ScriptedWork::Script{}));
  health = watch.Read();
  ASSERT_TRUE(health.has_value());
  EXPECT_EQ(health->status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_THAT(Result(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ServeNodeTest, AnIdleDialogueDoesNotKeepANodeThatDrains) {
  Dialogue<ServerReflectionRequest, ServerReflectionResponse> dialogue(
      MakeChannel(flags_.rpc.listen),
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  ASSERT_TRUE(dialogue.Read().has_value());
  Signal(SIGTERM);
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(ServeNodeTest, SessionsKeepANodeThatDrains) {
  BeginCall();
  Signal(SIGTERM);
  EXPECT_FALSE(EndsWithin(std::chrono::seconds(3)));
  EndCall();
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(ServeNodeTest, SessionsDoNotKeepANodeThatIsInterrupted) {
  BeginCall();
  Signal(SIGINT);
  EXPECT_TRUE(EndsWithin(std::chrono::seconds(30)));
  EndCall();
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(ServeNodeTest, ACallInFlightKeepsANodeThatIsInterrupted) {
  {
    Dialogue<ServerReflectionRequest, ServerReflectionResponse> dialogue(
        MakeChannel(flags_.rpc.listen),
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    ASSERT_TRUE(dialogue.Read().has_value());
    Signal(SIGINT);
    // Longer than one that drains waits for its last calls.
    EXPECT_FALSE(EndsWithin(std::chrono::seconds(2)));
  }
  EXPECT_THAT(Result(), IsOk());
}

}  // namespace
}  // namespace outrider
