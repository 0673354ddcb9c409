// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "coordinator/service/writer_sink.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "outrider/v1/generation.grpc.pb.h"

namespace outrider {
namespace {

// Its streams consist of their last update, and are cancelled before it, as a
// drain does it that is over.
class CancelledService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override {
    return {MethodOf<v1::GenerateRequest>(
        v1::GenerationService::service_full_name(), "Generate",
        [this](ServerCall& call, const auto&) { StartDetached(Run(call)); })};
  }
  CallQueue& queue() { return queue_; }

 private:
  Task<void> Run(ServerCall& call) {
    const auto cancellation = std::make_shared<Cancellation>();
    ResponseWriter& writer =
        ResponseWriter::For(call, {.queue = queue_}, cancellation);
    cancellation->Cancel();
    CoordinatorMetrics::Tally tally(metrics_, {});
    const GenerationUpdate start = {.start = GenerationStart{.seed = 7}};
    int num_starts = 0;
    WriterSink sink(
        {.writer = writer, .tally = tally, .start = start, .on_start = [&] {
           ++num_starts;
           EXPECT_FALSE(writer.has_written());
         }});
    GenerationUpdate last = {
        .finish = GenerationFinish{.reason = FinishReason::kLength}};
    const absl::Status told = co_await sink.Tell(std::move(last));
    EXPECT_THAT(told, testing::StatusIs(absl::StatusCode::kCancelled));
    EXPECT_EQ(num_starts, 1);
    StartDetached(writer.FinishAfterWrites(grpc::Status::OK));
  }

  MetricRegistry registry_{{}};
  CoordinatorMetrics metrics_{registry_};
  CallQueue queue_{/*num_threads=*/1};  // last: ends first
};

TEST(WriterSinkTest, AStreamThatEndsWellHasItsFinish) {
  SetUpGrpc();
  CancelledService service;
  auto server =
      RpcServer::Start({.listen = "127.0.0.1:0"}, {&service}, service.queue());
  ASSERT_THAT(server, testing::IsOk());
  const auto stub =
      v1::GenerationService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const auto reader = stub->Generate(&context, v1::GenerateRequest());
  v1::GenerateResponse first, last;
  EXPECT_TRUE(reader->Read(&first));
  EXPECT_EQ(first.start().seed(), 7u);
  EXPECT_TRUE(reader->Read(&last));
  EXPECT_TRUE(last.has_finish());
  v1::GenerateResponse none;
  EXPECT_FALSE(reader->Read(&none));
  EXPECT_TRUE(reader->Finish().ok());
}

}  // namespace
}  // namespace outrider
