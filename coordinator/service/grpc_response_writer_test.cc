// SPDX-License-Identifier: Apache-2.0
// The writer under a real gRPC stream, with a client that reads as it likes.
#include "coordinator/service/grpc_response_writer.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "outrider/v1/generation.grpc.pb.h"

namespace outrider {
namespace {

// Writes messages with the indices 0, 1, ... to each call, and says how far it
// came.
class CountingService final : public RpcService {
 public:
  struct Options {
    int num_messages = 0;
    int message_bytes = 0;
    std::chrono::milliseconds patience = std::chrono::minutes(1);
  };
  explicit CountingService(const Options& options) : options_(options) {}

  std::vector<RpcMethod> Methods() override {
    return {MethodOf<v1::GenerateRequest>(
        v1::GenerationService::service_full_name(), "Generate",
        [this](ServerCall& call, const auto&) {
          StartDetached(Run(ResponseWriter::For(
              call, {.queue = queue_, .patience = options_.patience},
              cancellation_)));
        })};
  }
  CallQueue& queue() { return queue_; }

  int num_written() const { return num_written_; }
  // Blocks until all is written, or cannot be: what the last Write said. The
  // call itself has a deadline, but may never have come.
  absl::Status AwaitEnd() {
    auto end = end_.get_future();
    if (end.wait_for(std::chrono::minutes(2)) != std::future_status::ready) {
      return absl::DeadlineExceededError("the writer has not come to its end");
    }
    return end.get();
  }
  // A coordinator that drains does this.
  void Cancel() { cancellation_->Cancel(); }

 private:
  Task<void> Run(ResponseWriter& writer) {
    absl::Status last;
    for (int i = 0; last.ok() && i < options_.num_messages; ++i) {
      v1::GenerateResponse response;
      response.set_first_index(static_cast<uint32_t>(i));
      response.mutable_finish()->set_trailing_text(
          std::string(static_cast<size_t>(options_.message_bytes), 'x'));
      last = co_await writer.Write(ResponseWriter::Encode(response));
      ++num_written_;
    }
    StartDetached(writer.FinishAfterWrites(
        grpc::Status(grpc::StatusCode::ABORTED, "the end")));
    end_.set_value(last);
  }

  const Options options_;
  const std::shared_ptr<Cancellation> cancellation_ =
      std::make_shared<Cancellation>();
  std::atomic<int> num_written_ = 0;
  std::promise<absl::Status> end_;
  CallQueue queue_{/*num_threads=*/1};  // last: ends first
};

// Writes one message to a call and then keeps the queue's thread for a while,
// as a round does that goes on.
class BusyService final : public RpcService {
 public:
  explicit BusyService(bool runs_what_waits)
      : runs_what_waits_(runs_what_waits) {}

  std::vector<RpcMethod> Methods() override {
    return {MethodOf<v1::GenerateRequest>(
        v1::GenerationService::service_full_name(), "Generate",
        [this](ServerCall& call, const auto&) {
          StartDetached(Run(ResponseWriter::For(
              call, {.queue = queue_}, std::make_shared<Cancellation>())));
        })};
  }
  CallQueue& queue() { return queue_; }
  // The client has read the message.
  void HasBeenRead() { is_read_.set_value(); }
  // Whether it had while the thread was busy.
  bool was_read_meanwhile() { return was_read_meanwhile_.get_future().get(); }

 private:
  Task<void> Run(ResponseWriter& writer) {
    const absl::Status status =
        co_await writer.Write(ResponseWriter::Encode(v1::GenerateResponse()));
    if (runs_what_waits_) CallQueue::RunWhatWaits();
    const auto longest = runs_what_waits_ ? std::chrono::seconds(30)
                                          : std::chrono::milliseconds(100);
    was_read_meanwhile_.set_value(is_read_.get_future().wait_for(longest) ==
                                  std::future_status::ready);
    StartDetached(writer.FinishAfterWrites(grpc::Status::OK));
  }

  const bool runs_what_waits_;
  std::promise<void> is_read_;
  std::promise<bool> was_read_meanwhile_;
  CallQueue queue_{/*num_threads=*/1};  // last: ends first
};

bool IsReadWhileTheThreadIsBusy(bool runs_what_waits) {
  SetUpGrpc();
  BusyService service(runs_what_waits);
  auto server =
      RpcServer::Start({.listen = "127.0.0.1:0"}, {&service}, service.queue());
  if (!server.ok()) {
    ADD_FAILURE() << server.status();
    return false;
  }
  const auto stub =
      v1::GenerationService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const auto reader = stub->Generate(&context, v1::GenerateRequest());
  v1::GenerateResponse response;
  EXPECT_TRUE(reader->Read(&response));
  service.HasBeenRead();
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
  return service.was_read_meanwhile();
}

TEST(ResponseWriterOrderTest, AMessageGoesOnceTheThreadIsFreeOrIsTold) {
  EXPECT_FALSE(IsReadWhileTheThreadIsBusy(/*runs_what_waits=*/false));
  EXPECT_TRUE(IsReadWhileTheThreadIsBusy(/*runs_what_waits=*/true));
}

class ResponseWriterTest : public ::testing::Test {
 protected:
  void Serve(const CountingService::Options& options) {
    SetUpGrpc();
    service_ = std::make_unique<CountingService>(options);
    auto server = RpcServer::Start({.listen = "127.0.0.1:0"}, {service_.get()},
                                   service_->queue());
    ASSERT_THAT(server, testing::IsOk());
    server_ = *std::move(server);
    stub_ = v1::GenerationService::NewStub(MakeChannel(server_->address()));
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::minutes(1));
    context_.set_wait_for_ready(true);  // a busy machine connects late
    reader_ = stub_->Generate(&context_, v1::GenerateRequest());
  }

  // Waits until the writer has written so many, read or not.
  void AwaitWritten(int num_messages) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (service_->num_written() < num_messages &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    ASSERT_GE(service_->num_written(), num_messages);
  }

  std::unique_ptr<CountingService> service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::GenerationService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
};

TEST_F(ResponseWriterTest, MessagesComeInOrderAndTheStatusAfterTheLast) {
  constexpr int kNumMessages = 3000;
  Serve({.num_messages = kNumMessages, .message_bytes = 10});
  v1::GenerateResponse response;
  uint32_t num_read = 0;
  while (reader_->Read(&response)) {
    ASSERT_EQ(response.first_index(), num_read++);
  }
  EXPECT_EQ(num_read, uint32_t{kNumMessages});
  const grpc::Status status = reader_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "the end");
  EXPECT_THAT(service_->AwaitEnd(), testing::IsOk());
}

TEST_F(ResponseWriterTest, AStreamWithoutMessagesIsItsStatus) {
  Serve({.num_messages = 0});
  v1::GenerateResponse response;
  EXPECT_FALSE(reader_->Read(&response));
  EXPECT_EQ(reader_->Finish().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(service_->AwaitEnd(), testing::IsOk());
}

TEST_F(ResponseWriterTest, ASlowClientMakesTheWriterWait) {
  constexpr int kNumMessages = 1500;
  // One in the queue, and what gRPC holds itself on both sides: some 16 MiB,
  // more where the client's thread is kept from running.
  constexpr int kMostAhead = 1 + 2 * 256;
  Serve({.num_messages = kNumMessages, .message_bytes = 1 << 16});
  v1::GenerateResponse response;
  AwaitWritten(1);
  for (int num_read = 0; reader_->Read(&response); ++num_read) {
    ASSERT_LE(service_->num_written() - num_read, kMostAhead);
    ASSERT_EQ(response.first_index(), static_cast<uint32_t>(num_read));
  }
  EXPECT_EQ(service_->num_written(), kNumMessages);
  EXPECT_THAT(service_->AwaitEnd(), testing::IsOk());
  EXPECT_EQ(reader_->Finish().error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(ResponseWriterTest, AClientThatLeavesEndsAWriterThatWaitsForIt) {
  Serve({.num_messages = 1 << 20, .message_bytes = 1 << 16});
  AwaitWritten(1);
  context_.TryCancel();
  EXPECT_THAT(service_->AwaitEnd(),
              testing::StatusIs(absl::StatusCode::kCancelled,
                                ::testing::HasSubstr("is gone")));
  EXPECT_LT(service_->num_written(), 1 << 20);
  EXPECT_EQ(reader_->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ResponseWriterTest, AClientThatReadsNothingIsDropped) {
  Serve({.num_messages = 1 << 20,
         .message_bytes = 1 << 16,
         .patience = std::chrono::milliseconds(100)});
  EXPECT_THAT(service_->AwaitEnd(),
              testing::StatusIs(absl::StatusCode::kCancelled,
                                ::testing::HasSubstr("stopped reading")));
  v1::GenerateResponse response;
  while (reader_->Read(&response)) {
  }
  EXPECT_EQ(reader_->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ResponseWriterTest, ACancellationEndsAWriterWhoseClientReadsNothing) {
  Serve({.num_messages = 1 << 20, .message_bytes = 1 << 16});
  AwaitWritten(1);
  service_->Cancel();
  EXPECT_THAT(service_->AwaitEnd(),
              testing::StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ResponseWriterTest, AShutdownDoesNotWaitForAClientThatReadsNothing) {
  Serve({.num_messages = 1 << 20, .message_bytes = 1 << 16});
  AwaitWritten(1);
  server_->Shutdown(std::chrono::seconds(0));
  EXPECT_THAT(service_->AwaitEnd(),
              testing::StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace outrider
