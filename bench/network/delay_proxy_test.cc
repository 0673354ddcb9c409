// SPDX-License-Identifier: Apache-2.0
#include "bench/network/delay_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>

#include "bench/network/echo.h"
#include "bench/network/socket.h"
#include "core/testing/status_matchers.h"

namespace outrider::bench {
namespace {

using ::outrider::testing::StatusIs;
using std::chrono::milliseconds;

struct ProxiedEcho {
  explicit ProxiedEcho(const LinkOptions& link)
      : echo(EchoServer::Start().value()),
        proxy(DelayProxy::Start({.target = echo->address(), .link = link})
                  .value()) {}

  Socket Open() const {
    Socket socket =
        Connect(Resolve(proxy->address()).value(), /*blocks=*/true).value();
    const timeval longest = {.tv_sec = 20, .tv_usec = 0};
    setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest));
    return socket;
  }

  std::unique_ptr<EchoServer> echo;
  std::unique_ptr<DelayProxy> proxy;
};

// Sends `bytes` from a thread of its own and reads as many back.
std::string Exchange(const Socket& socket, const std::string& bytes) {
  std::jthread sender([&] {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = send(socket.fd(), bytes.data() + sent,
                                 bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += count;
    }
  });
  std::string received(bytes.size(), '\0');
  const ssize_t count =
      recv(socket.fd(), received.data(), received.size(), MSG_WAITALL);
  received.resize(std::max<ssize_t>(count, 0));
  return received;
}

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 >> 3);
  return bytes;
}

TEST(DelayProxyTest, BytesArriveUnchangedAndInOrder) {
  const ProxiedEcho echo({.delay = milliseconds(2), .jitter = milliseconds(2)});
  const Socket socket = echo.Open();
  for (int i = 0; i < 20; ++i) {
    const std::string bytes = Pattern(1000 + i);
    ASSERT_EQ(Exchange(socket, bytes), bytes);
  }
}

TEST(DelayProxyTest, ARoundTripIsNeverShorterThanTwoDelays) {
  const ProxiedEcho echo({.delay = milliseconds(3)});
  EXPECT_GE(MeasureRoundTrip(echo.proxy->address(), 5).value(),
            milliseconds(6));
}

TEST(DelayProxyTest, AChangedLinkHoldsForConnectionsThatAreThere) {
  const ProxiedEcho echo({});
  const Socket socket = echo.Open();
  ASSERT_EQ(Exchange(socket, "before"), "before");
  ASSERT_TRUE(echo.proxy->SetLink({.delay = milliseconds(30)}).ok());
  // The thread takes the change before it reads what is sent after it.
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(Exchange(socket, "after"), "after");
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(60));
}

TEST(DelayProxyTest, AnEndOfOneSideReachesTheOther) {
  const ProxiedEcho echo({.delay = milliseconds(1)});
  const Socket socket = echo.Open();
  ASSERT_EQ(Exchange(socket, "x"), "x");
  shutdown(socket.fd(), SHUT_WR);
  char byte = 0;
  EXPECT_EQ(recv(socket.fd(), &byte, 1, 0), 0);
}

TEST(DelayProxyTest, ADroppedConnectionEndsInOrderAndAResetOneDoesNot) {
  for (const bool is_reset : {false, true}) {
    LinkOptions link;
    (is_reset ? link.mean_bytes_to_reset : link.mean_bytes_to_drop) = 2000;
    const ProxiedEcho echo(link);
    const Socket socket = echo.Open();
    const std::string bytes = Pattern(50000);
    send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::array<char, 4096> buffer;
    ssize_t count = 0;
    do {
      count = recv(socket.fd(), buffer.data(), buffer.size(), 0);
    } while (count > 0);
    const int error = count < 0 ? errno : 0;
    EXPECT_EQ(error, is_reset ? ECONNRESET : 0);
    EXPECT_EQ(echo.proxy->counters().num_reset, is_reset ? 1 : 0);
    EXPECT_EQ(echo.proxy->counters().num_dropped, is_reset ? 0 : 1);
  }
}

TEST(DelayProxyTest, ManyConnectionsKeepApart) {
  const ProxiedEcho echo({.delay = milliseconds(1)});
  std::vector<Socket> sockets;
  for (int i = 0; i < 50; ++i) sockets.push_back(echo.Open());
  for (size_t i = 0; i < sockets.size(); ++i) {
    const std::string bytes = std::to_string(i);
    send(sockets[i].fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  for (size_t i = 0; i < sockets.size(); ++i) {
    std::string received(std::to_string(i).size(), '\0');
    recv(sockets[i].fd(), received.data(), received.size(), MSG_WAITALL);
    EXPECT_EQ(received, std::to_string(i));
  }
  EXPECT_EQ(echo.proxy->counters().num_connections, 50);
}

TEST(DelayProxyTest, ATargetThatDoesNotAnswerClosesTheConnection) {
  auto echo = std::make_unique<ProxiedEcho>(LinkOptions());
  echo->echo.reset();
  const Socket socket = echo->Open();
  char byte = 0;
  EXPECT_LE(recv(socket.fd(), &byte, 1, 0), 0);
}

TEST(DelayProxyTest, RefusesABadLinkAndKeepsTheOldOne) {
  EXPECT_THAT(DelayProxy::Start({.target = "127.0.0.1:1",
                                 .link = {.delay = milliseconds(-1)}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const ProxiedEcho echo({});
  EXPECT_THAT(echo.proxy->SetLink({.jitter = milliseconds(1)}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Exchange(echo.Open(), "still"), "still");
}

}  // namespace
}  // namespace outrider::bench
