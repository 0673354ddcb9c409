// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/unary_call.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

// Accepts one connection, says what HTTP/2 begins with, and nothing ever after.
class SilentServer {
 public:
  SilentServer() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, length), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, any, &length), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] {
      connection_ = accept(listener_, nullptr, nullptr);
      const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
      EXPECT_EQ(write(connection_, settings.data(), settings.size()), 9);
    });
  }
  ~SilentServer() {
    thread_.join();
    close(connection_);
    close(listener_);
  }
  const std::string& address() const { return address_; }

 private:
  const int listener_;
  int connection_ = -1;
  std::string address_;
  std::thread thread_;
};

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

}  // namespace
}  // namespace outrider
