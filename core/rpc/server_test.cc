// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server.h"

#include <google/protobuf/empty.pb.h>
#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <future>
#include <latch>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/rpc/channel.h"
#include "core/testing/dialogue.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.pb.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using grpc::health::v1::HealthCheckResponse;
using ::outrider::testing::Dialogue;
using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;
// A message of any type: its fields are the unknown ones of an empty message.
using AnyMessage = google::protobuf::Empty;
using AnyStub = grpc::TemplatedGenericStub<AnyMessage, AnyMessage>;

std::chrono::system_clock::time_point In(std::chrono::seconds time) {
  return std::chrono::system_clock::now() + time;
}

// A server and its queue.
class Served {
 public:
  explicit Served(const RpcServer::Options& options = {.listen = "127.0.0.1:0"},
                  const std::vector<RpcService*>& services = {})
      : server_(RpcServer::Start(options, services, queue_)) {}

  const absl::Status& status() const { return server_.status(); }
  RpcServer* operator->() { return server_->get(); }
  CallQueue& queue() { return queue_; }

 private:
  CallQueue queue_{/*num_threads=*/1};
  absl::StatusOr<std::unique_ptr<RpcServer>> server_;
};

// A unary call with a header of this many bytes, and an empty message.
grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                  const std::string& method, size_t header_bytes = 0) {
  AnyStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(In(std::chrono::seconds(20)));
  if (header_bytes > 0) {
    context.AddMetadata("x-long", std::string(header_bytes, 'a'));
  }
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, {}, &queue);
  call->StartCall();
  AnyMessage response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  return status;
}

grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         size_t header_bytes = 0) {
  return Call(channel, "/grpc.health.v1.Health/Check", header_bytes);
}

// A stream that lasts.
using HealthWatch = Dialogue<AnyMessage, AnyMessage>;
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

TEST(RpcServerTest, LongHeadersDoNotEndTheConnectionsOtherStreams) {
  Served server;
  const auto channel = grpc::CreateChannel(server->address(),
                                           grpc::InsecureChannelCredentials());
  HealthWatch watch(channel, kWatch);
  ASSERT_TRUE(watch.Read());
  bool serving = false;
  for (const size_t bytes : {7'900, 9'000, 20'000, 120'000}) {
    CheckHealth(channel, bytes);
    server->SetServing(serving = !serving);
    EXPECT_TRUE(watch.Read()) << bytes;
    EXPECT_TRUE(CheckHealth(channel).ok()) << bytes;
  }
  EXPECT_EQ(server->unread().NumOf(UnreadReason::kMetadata), 3);
}

// A client would keep the last one back, and take the process for a dead one.
TEST(RpcServerTest, AsManyCallsAsTheServicesTakeHoldUpNoOther) {
  constexpr int kCalls = 2000;  // a multiple of 500
  Served server({.listen = "127.0.0.1:0", .max_calls = kCalls});
  const auto channel = grpc::CreateChannel(server->address(),
                                           grpc::InsecureChannelCredentials());
  AnyStub stub(channel);
  grpc::CompletionQueue queue;
  // They last, as the server has not said all.
  struct Lasting {
    grpc::ClientContext context;
    AnyMessage response;
    grpc::Status status;
    decltype(stub.PrepareUnaryCall(nullptr, "", {}, nullptr)) call;
  };
  std::vector<std::unique_ptr<Lasting>> all;
  for (int i = 0; i < kCalls; ++i) {
    Lasting& one = *all.emplace_back(std::make_unique<Lasting>());
    one.call = stub.PrepareUnaryCall(&one.context, kWatch, {}, &queue);
    one.call->StartCall();
    one.call->Finish(&one.response, &one.status, nullptr);
    // The others were read then: only so many may wait for that.
    if (i % 500 == 499) {
      EXPECT_TRUE(CheckHealth(channel).ok()) << i;
    }
  }
  for (const auto& one : all) one->context.TryCancel();
  void* tag = nullptr;
  bool ok = false;
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(queue.Next(&tag, &ok));
}

TEST(RpcServerTest, AClientWithoutCallsMayPingItsConnection) {
  Served server;
  grpc::ChannelArguments arguments;
  // No client of ours does so sooner.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 500);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  const auto channel = grpc::CreateCustomChannel(
      server->address(), grpc::InsecureChannelCredentials(), arguments);
  ASSERT_TRUE(channel->WaitForConnected(In(std::chrono::seconds(20))));
  // Two strikes are forgiven, the fourth ping is where a server hangs up.
  EXPECT_FALSE(channel->WaitForStateChange(GRPC_CHANNEL_READY,
                                           In(std::chrono::seconds(4))));
}

TEST(RpcServerTest, AnOldConnectionIsLeftForANewOneAndItsStreamsGoOn) {
  Served server({.listen = "127.0.0.1:0",
                 .max_connection_age = std::chrono::milliseconds(500)});
  const auto channel = grpc::CreateChannel(server->address(),
                                           grpc::InsecureChannelCredentials());
  ASSERT_TRUE(channel->WaitForConnected(In(std::chrono::seconds(20))));
  HealthWatch watch(channel, kWatch);
  ASSERT_TRUE(watch.Read());
  ASSERT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY,
                                          In(std::chrono::seconds(20))));
  server->SetServing(true);
  EXPECT_TRUE(watch.Read());  // by the old connection
  EXPECT_TRUE(CheckHealth(channel).ok());
}

std::string SocketFile(const char* name) {
  return "unix:" + ::testing::TempDir() + name + std::to_string(getpid());
}

TEST(RpcServerTest, ASocketFileIsServedAndGoesWithItsServer) {
  const std::string address = SocketFile("served");
  Served server({.listen = address});
  ASSERT_THAT(server.status(), IsOk());
  EXPECT_EQ(server->address(), address);
  EXPECT_TRUE(CheckHealth(MakeChannel(address)).ok());
  server->Shutdown(std::chrono::seconds(0));
  EXPECT_FALSE(std::filesystem::exists(address.substr(5)));
}

TEST(RpcServerTest, ASocketFileIsNotTakenFromAServerThatListens) {
  const std::string address = SocketFile("taken");
  const Served first({.listen = address});
  ASSERT_THAT(first.status(), IsOk());
  EXPECT_THAT(Served({.listen = address}).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("another server listens there")));
  EXPECT_TRUE(CheckHealth(MakeChannel(address)).ok());
}

TEST(RpcServerTest, ASocketFileThatWasLeftBehindIsReplaced) {
  const std::string address = SocketFile("left");
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = {}};
  address.copy(name.sun_path, sizeof(name.sun_path) - 1, /*pos=*/5);
  ASSERT_EQ(bind(left, reinterpret_cast<const sockaddr*>(&name), sizeof(name)),
            0);
  close(left);
  Served server({.listen = address});
  ASSERT_THAT(server.status(), IsOk());
  EXPECT_TRUE(CheckHealth(MakeChannel(address)).ok());
}

TEST(RpcServerTest, ASocketFileThatCannotBeMadeIsAnError) {
  EXPECT_THAT(Served({.listen = "unix:/no/such/folder/x"}).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("no socket file can be made there")));
}

TEST(RpcServerTest, CertificatesCannotBeAskedForOnASocketFile) {
  EXPECT_THAT(CheckServerOptions({.listen = "unix:/run/x",
                                  .tls_clients = {"outrider-coordinator"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("on a unix socket")));
}

TEST(RpcServerTest, AServerAnswersItselfWhileItDrainsAndIsShutDown) {
  Served server;
  EXPECT_TRUE(server->Answers());
  server->SetServing(false);
  EXPECT_TRUE(server->Answers());  // a draining process is alive
  server->Shutdown(std::chrono::seconds(0));
  EXPECT_TRUE(server->Answers());
}

TEST(RpcServerTest, AShutdownEndsTheCallsOfThoseWhoWatchItsHealth) {
  Served server;
  HealthWatch watch(MakeChannel(server->address()), kWatch);
  ASSERT_TRUE(watch.Read());
  server->Shutdown(std::chrono::minutes(10));  // no deadline to be waited for
  while (watch.Read()) {
  }
}

// They hear it also where the shutdown comes while they are told what was
// before.
TEST(RpcServerTest, WhoWatchesItsHealthHearsThatItServesNoMoreBeforeTheEnd) {
  for (int i = 0; i < 10; ++i) {
    Served server;
    Dialogue<AnyMessage, HealthCheckResponse> watch(
        MakeChannel(server->address()), kWatch);
    ASSERT_TRUE(watch.Read());
    server->SetServing(true);
    server->Shutdown(std::chrono::minutes(10));
    auto last = HealthCheckResponse::NOT_SERVING;
    while (const auto health = watch.Read()) last = health->status();
    EXPECT_EQ(last, HealthCheckResponse::NOT_SERVING);
  }
}

// Each may have a message in memory that is not here whole.
TEST(RpcServerTest, SoManyAskForReflectionAtATime) {
  constexpr char kMethod[] =
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  using Asking = Dialogue<AnyMessage, AnyMessage>;
  Served server;
  const auto channel = MakeChannel(server->address());
  std::deque<Asking> some;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(some.emplace_back(channel, kMethod).Read());
  }
  EXPECT_FALSE(Asking(channel, kMethod).Read());
  some.pop_back();
  while (!Asking(channel, kMethod).Read()) {  // once the server has noticed
  }
}

// Has no luck, so many times, and then some.
class ThrowingService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override {
    return {MethodOf<AnyMessage>("test.ThrowingService", "Try",
                                 [this](ServerCall& call, const AnyMessage&) {
                                   ++num_calls_;
                                   if (num_calls_ == 1) throw std::bad_alloc();
                                   if (num_calls_ == 2) {
                                     throw std::runtime_error("at /a/place");
                                   }
                                   call.Reply(AnyMessage());
                                 })};
  }

 private:
  int num_calls_ = 0;
};

TEST(RpcServerTest, WhatAHandlerThrowsEndsItsCallAloneAndIsLoggedOnce) {
  ThrowingService service;
  Served server({.listen = "127.0.0.1:0"}, {&service});
  HealthWatch watch(MakeChannel(server->address()), kWatch);
  ASSERT_TRUE(watch.Read());
  constexpr char kTry[] = "/test.ThrowingService/Try";
  ::testing::internal::CaptureStderr();
  const grpc::Status first = Call(MakeChannel(server->address()), kTry);
  const grpc::Status second = Call(MakeChannel(server->address()), kTry);
  const grpc::Status third = Call(MakeChannel(server->address()), kTry);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(first.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(second.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_TRUE(third.ok()) << third.error_message();
  EXPECT_THAT(second.error_message(), Not(HasSubstr("/a/place")));
  EXPECT_THAT(log, HasSubstr("/test.ThrowingService/Try: std::bad_alloc"));
  EXPECT_THAT(log, HasSubstr("/test.ThrowingService/Try: at /a/place"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
  server->SetServing(true);
  EXPECT_TRUE(watch.Read());  // of another call
}

// Keeps the calls that it gets until it is told to end them.
class KeepingService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override {
    return {MethodOf<AnyMessage>("test.KeepingService", "Keep",
                                 [this](ServerCall& call, const AnyMessage&) {
                                   kept_.set_value(&call);
                                 })};
  }
  ServerCall& kept() { return *kept_.get_future().get(); }

 private:
  std::promise<ServerCall*> kept_;
};

// A call of it that nobody answers yet.
class KeptCall {
 public:
  explicit KeptCall(const std::string& address) : stub_(MakeChannel(address)) {
    call_ = stub_.PrepareUnaryCall(&context_, "/test.KeepingService/Keep", {},
                                   &queue_);
    call_->StartCall();
    call_->Finish(&response_, &status_, nullptr);
  }
  void Cancel() { context_.TryCancel(); }
  grpc::StatusCode Await() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
    return status_.error_code();
  }

 private:
  AnyStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<AnyMessage>> call_;
  AnyMessage response_;
  grpc::Status status_;
};

TEST(RpcServerTest, AHandlerMayEndItsCallLaterOnAnotherThread) {
  KeepingService service;
  Served server({.listen = "127.0.0.1:0"}, {&service});
  KeptCall call(server->address());
  ServerCall& kept = service.kept();
  EXPECT_FALSE(kept.is_cancelled());
  kept.Reply(AnyMessage());
  EXPECT_EQ(call.Await(), grpc::StatusCode::OK);
}

TEST(RpcServerTest, AHandlerLearnsThatItsCallerHasGone) {
  KeepingService service;
  Served server({.listen = "127.0.0.1:0"}, {&service});
  KeptCall call(server->address());
  ServerCall& kept = service.kept();
  call.Cancel();
  EXPECT_EQ(call.Await(), grpc::StatusCode::CANCELLED);
  while (!kept.is_cancelled()) std::this_thread::yield();
  kept.Finish(grpc::Status::CANCELLED);
}

TEST(RpcServerTest, AShutdownCancelsACallAtItsDeadlineAndAwaitsItsHandler) {
  KeepingService service;
  Served server({.listen = "127.0.0.1:0"}, {&service});
  KeptCall call(server->address());
  ServerCall& kept = service.kept();
  bool has_ended = false;
  std::jthread handler([&] {
    while (!kept.is_cancelled()) std::this_thread::yield();
    has_ended = true;
    kept.Finish(grpc::Status::CANCELLED);
  });
  server->Shutdown(std::chrono::seconds(0));
  EXPECT_TRUE(has_ended);
  call.Await();
}

TEST(RpcServerTest, ClientsAreSentAwayAtOnceAndTheirCallsInFlightGoOn) {
  KeepingService service;
  Served server({.listen = "127.0.0.1:0"}, {&service});
  server->SetServing(true);
  const auto channel = grpc::CreateChannel(server->address(),
                                           grpc::InsecureChannelCredentials());
  ASSERT_TRUE(channel->WaitForConnected(In(std::chrono::seconds(20))));
  KeptCall call(server->address());
  ServerCall& kept = service.kept();
  server->SendAway();
  EXPECT_FALSE(server->serving());
  EXPECT_TRUE(server->Answers());
  // The connection is given up, and there is no other.
  EXPECT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY,
                                          In(std::chrono::seconds(20))));
  EXPECT_EQ(CheckHealth(channel).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(kept.is_cancelled());
  kept.Reply(AnyMessage());
  EXPECT_EQ(call.Await(), grpc::StatusCode::OK);
}

// A handler that has begun, and does not return until its end.
class Hang final : public Completion {
 public:
  explicit Hang(CallQueue& queue) {
    Arm();
    alarm_.Set(queue.queue(), std::chrono::system_clock::now(), this);
    has_begun_.wait();
  }
  void End() { is_over_.count_down(); }

 private:
  void OnComplete(bool /*ok*/) override {
    has_begun_.count_down();
    is_over_.wait();
  }

  std::latch has_begun_{1};
  std::latch is_over_{1};
  grpc::Alarm alarm_;
};

TEST(RpcServerTest, AServerWhoseThreadHangsDoesNotAnswerWhileItDrainsEither) {
  Served server;
  server->SendAway();
  Hang hang(server.queue());
  EXPECT_FALSE(server->Answers());
  hang.End();
  EXPECT_TRUE(server->Answers());
}

TEST(RpcServerTest, AServerThatSentItsClientsAwayIsShutDownAsAnyOther) {
  KeepingService service;
  Served server({.listen = "127.0.0.1:0"}, {&service});
  KeptCall call(server->address());
  ServerCall& kept = service.kept();
  server->SendAway();
  std::jthread handler([&] {
    while (!kept.is_cancelled()) std::this_thread::yield();
    kept.Finish(grpc::Status::CANCELLED);
  });
  server->Shutdown(std::chrono::seconds(0));
  EXPECT_NE(call.Await(), grpc::StatusCode::OK);
}

}  // namespace
}  // namespace outrider
