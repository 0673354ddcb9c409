// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_SOCKET_H_
#define OUTRIDER_BENCH_NETWORK_SOCKET_H_

#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outrider::bench {

// A file descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.Take()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { Close(); }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close();

 private:
  int Take();

  int fd_ = -1;
};

// Where a connection goes: HOST:PORT, looked up once.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};
// UNAVAILABLE: the host has no address.
absl::StatusOr<SocketAddress> Resolve(absl::string_view address);

// Listens on a free port of this IPv4 address; `address` becomes HOST:PORT.
// UNAVAILABLE: the system refuses.
absl::StatusOr<Socket> ListenOn(const std::string& host, std::string& address);
// The same on loopback.
absl::StatusOr<Socket> ListenOnLoopback(std::string& address);

// A TCP socket without Nagle's delay, connected; where it does not block, the
// connection may still be on its way. UNAVAILABLE: nobody answers.
absl::StatusOr<Socket> Connect(const SocketAddress& address, bool blocks);

// Accepts one, without Nagle's delay and not blocking; closed where there was
// none.
Socket AcceptNonBlocking(const Socket& listener);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_SOCKET_H_
