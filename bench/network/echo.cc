// SPDX-License-Identifier: Apache-2.0
#include "bench/network/echo.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

// Whether the peer is still there.
bool EchoOnce(int fd) {
  std::array<char, 4096> buffer;
  const ssize_t count = recv(fd, buffer.data(), buffer.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  // An echo is short: it fits what the socket has room for.
  return count > 0 && send(fd, buffer.data(), count, MSG_NOSIGNAL) == count;
}

// One echo of a whole buffer.
bool RoundTrip(int fd) {
  std::array<char, 64> buffer = {};
  if (send(fd, buffer.data(), buffer.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(buffer.size())) {
    return false;
  }
  return recv(fd, buffer.data(), buffer.size(), MSG_WAITALL) ==
         static_cast<ssize_t>(buffer.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<EchoServer>> EchoServer::Start(
    const std::string& host) {
  std::string address;
  OUTRIDER_ASSIGN_OR_RETURN(Socket listener, ListenOn(host, address));
  return std::unique_ptr<EchoServer>(
      new EchoServer(std::move(listener), std::move(address)));
}

EchoServer::EchoServer(Socket listener, std::string address)
    : listener_(std::move(listener)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      address_(std::move(address)),
      thread_([this] { Run(); }) {}

EchoServer::~EchoServer() { eventfd_write(wake_.fd(), 1); }

void EchoServer::Run() {
  std::vector<Socket> peers;
  while (true) {
    std::vector<pollfd> polled = {{wake_.fd(), POLLIN, 0},
                                  {listener_.fd(), POLLIN, 0}};
    for (const Socket& peer : peers) polled.push_back({peer.fd(), POLLIN, 0});
    poll(polled.data(), polled.size(), /*timeout=*/-1);
    if (polled[0].revents != 0) return;
    std::vector<Socket> alive;
    for (size_t i = 0; i < peers.size(); ++i) {
      if (polled[i + 2].revents == 0 || EchoOnce(peers[i].fd())) {
        alive.push_back(std::move(peers[i]));
      }
    }
    peers = std::move(alive);
    if (polled[1].revents != 0) {
      Socket peer = AcceptNonBlocking(listener_);
      if (peer.is_open()) peers.push_back(std::move(peer));
    }
  }
}

absl::StatusOr<std::chrono::nanoseconds> MeasureRoundTrip(
    const std::string& address, int num_echoes,
    std::chrono::nanoseconds pause) {
  OUTRIDER_ASSIGN_OR_RETURN(const SocketAddress target, Resolve(address));
  OUTRIDER_ASSIGN_OR_RETURN(const Socket socket,
                            Connect(target, /*blocks=*/true));
  const timeval longest = {.tv_sec = 30, .tv_usec = 0};
  setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest));
  std::vector<std::chrono::steady_clock::duration> times;
  for (int i = 0; i <= num_echoes; ++i) {
    std::this_thread::sleep_for(pause);
    const auto start = std::chrono::steady_clock::now();
    if (!RoundTrip(socket.fd())) {
      return absl::UnavailableError("an echo was not answered");
    }
    if (i > 0) times.push_back(std::chrono::steady_clock::now() - start);
  }
  const auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return std::chrono::duration_cast<std::chrono::nanoseconds>(*middle);
}

std::chrono::nanoseconds MeasureRoundTrips(const std::string& address,
                                           int num_connections,
                                           int num_echoes) {
  const std::chrono::milliseconds pause(num_connections == 1 ? 0 : 50);
  std::vector<std::chrono::nanoseconds> medians(num_connections);
  {
    std::vector<std::jthread> threads;
    for (std::chrono::nanoseconds& median : medians) {
      threads.emplace_back([&median, &address, num_echoes, pause] {
        median = MeasureRoundTrip(address, num_echoes, pause)
                     .value_or(std::chrono::nanoseconds(0));
      });
    }
  }
  std::sort(medians.begin(), medians.end());
  return medians[medians.size() / 2];
}

std::chrono::nanoseconds RoundTripTolerance(std::chrono::nanoseconds nominal) {
  return nominal / 20 + std::chrono::microseconds(300);
}

}  // namespace outrider::bench
