// SPDX-License-Identifier: Apache-2.0
// Races in a handler and in a coroutine of our own. The thread sanitizer must
// report both in spite of tests/tsan.supp: this test passes when it does.
#include <grpcpp/client_context.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/rpc/unary_call.h"
#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "outrider/v1/generation.grpc.pb.h"

namespace outrider::testing {
namespace {

class RacyService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override {
    return {MethodOf<v1::GenerationServiceDescribeRequest>(
        v1::GenerationService::service_full_name(), "Describe",
        [this](ServerCall& call, const auto&) { Describe(call); })};
  }

 private:
  void Describe(ServerCall& call) {
    v1::GenerationServiceDescribeResponse response;
    response.set_has_tokenizer(++num_calls_ % 2 == 0);
    call.Reply(response);
  }

  int num_calls_ = 0;  // nothing guards it: that is the race
};

TEST(PlantedRaceTest, CallsFromManyClientsCountWithoutALock) {
  RacyService service;
  CallQueue queue(/*num_threads=*/4);
  const auto server =
      RpcServer::Start({.listen = "127.0.0.1:0"}, {&service}, queue);
  ASSERT_THAT(server, IsOk());
  std::vector<std::jthread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&server] {
      const auto stub =
          v1::GenerationService::NewStub(MakeChannel((*server)->address()));
      for (int call = 0; call < 50; ++call) {
        grpc::ClientContext context;
        v1::GenerationServiceDescribeResponse response;
        EXPECT_TRUE(stub->Describe(&context, {}, &response).ok());
      }
    });
  }
  callers.clear();
  (*server)->Shutdown(std::chrono::seconds(0));
}

struct Counters {
  int num_goes_on = 0;  // nothing guards it: that is the race
  std::atomic<int> num_ended = 0;
};

Task<void> RacyCoroutine(v1::GenerationService::Stub& stub, CallQueue& queue,
                         Counters& counters) {
  const v1::GenerationServiceDescribeRequest request;
  Cancellation none;
  for (int call = 0; call < 50; ++call) {
    const auto response =
        co_await CallUnary<v1::GenerationServiceDescribeResponse>(
            [&](grpc::ClientContext* context, grpc::CompletionQueue* cq) {
              return stub.PrepareAsyncDescribe(context, request, cq);
            },
            {.queue = queue,
             .deadline = std::chrono::seconds(60),
             .cancellation = none});
    ++counters.num_goes_on;
  }
  ++counters.num_ended;
}

TEST(PlantedRaceTest, CoroutinesOnManyThreadsCountWithoutALock) {
  RacyService service;
  CallQueue queue(/*num_threads=*/4);
  const auto server =
      RpcServer::Start({.listen = "127.0.0.1:0"}, {&service}, queue);
  ASSERT_THAT(server, IsOk());
  const auto stub =
      v1::GenerationService::NewStub(MakeChannel((*server)->address()));
  Counters counters;
  for (int i = 0; i < 8; ++i) {
    StartDetached(RacyCoroutine(*stub, queue, counters));
  }
  while (counters.num_ended < 8) std::this_thread::yield();
  (*server)->Shutdown(std::chrono::seconds(0));
}

}  // namespace
}  // namespace outrider::testing
