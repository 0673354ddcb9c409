// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <future>

#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/unary_call.h"
#include "core/testing/silent_server.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::SilentServer;
using std::chrono::milliseconds;

// One that nobody gives up ends at the call's own deadline, which is less than
// the patience that is usual.
Task<void> Call(grpc::GenericStub& stub, CallQueue& queue,
                std::promise<absl::Status>& end) {
  Cancellation cancellation;
  const auto reply = co_await CallUnary<grpc::ByteBuffer>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* calls) {
        return stub.PrepareUnaryCall(context, "/any.Service/Method",
                                     grpc::ByteBuffer(), calls);
      },
      {.queue = queue,
       .deadline = std::chrono::seconds(5),
       .cancellation = cancellation});
  end.set_value(reply.status());
}

TEST(ChannelTest, WhoSaysNothingIsGivenUpWhenItsKeepaliveSaysSo) {
  SilentServer server;
  grpc::GenericStub stub(MakeChannel(
      server.address(), {.keepalive = {.quiet = milliseconds(100),
                                       .answer = milliseconds(100)}}));
  CallQueue queue(/*num_threads=*/1);
  std::promise<absl::Status> end;
  StartDetached(Call(stub, queue, end));
  EXPECT_TRUE(absl::IsUnavailable(end.get_future().get()));
}

// A node may be far away, or have no core free. An attempt that is given up too
// early is followed by others like it, for ever.
TEST(ChannelTest, WhoTakesLongToConnectIsWaitedFor) {
  const SilentServer server(/*before_it_speaks=*/milliseconds(650));
  const auto channel = MakeChannel(server.address(), {});
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                        std::chrono::seconds(10)));
}

}  // namespace
}  // namespace outrider
