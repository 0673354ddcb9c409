// SPDX-License-Identifier: Apache-2.0
#include "bench/network/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/network/system_error.h"
#include "core/base/stream_hints.h"

namespace outrider::bench {
namespace {

void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Take();
  }
  return *this;
}

void Socket::Close() {
  if (fd_ >= 0) close(Take());
}

int Socket::Take() { return std::exchange(fd_, -1); }

absl::StatusOr<SocketAddress> Resolve(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("needs HOST:PORT, not \"", address, "\""));
  }
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo* found = nullptr;
  const int error = getaddrinfo(std::string(host).c_str(),
                                std::string(address.substr(colon + 1)).c_str(),
                                &kStreamHints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat(address, " has no address: ", gai_strerror(error)));
  }
  SocketAddress result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.length = found->ai_addrlen;
  freeaddrinfo(found);
  return result;
}

absl::StatusOr<Socket> ListenOn(const std::string& host, std::string& address) {
  Socket socket(
      ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return SystemError("make a socket");
  sockaddr_in local = {};
  local.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &local.sin_addr) != 1) {
    return absl::UnavailableError(absl::StrCat(host, " is no IPv4 address"));
  }
  socklen_t length = sizeof(local);
  auto* const generic = reinterpret_cast<sockaddr*>(&local);
  if (bind(socket.fd(), generic, length) != 0 ||
      listen(socket.fd(), SOMAXCONN) != 0 ||
      getsockname(socket.fd(), generic, &length) != 0) {
    return SystemError(absl::StrCat("listen on ", host));
  }
  address = absl::StrCat(host, ":", ntohs(local.sin_port));
  return socket;
}

absl::StatusOr<Socket> ListenOnLoopback(std::string& address) {
  return ListenOn("127.0.0.1", address);
}

absl::StatusOr<Socket> Connect(const SocketAddress& address, bool blocks) {
  const int kind = SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK);
  Socket socket(::socket(address.storage.ss_family, kind, 0));
  if (!socket.is_open()) return SystemError("make a socket");
  SendAtOnce(socket.fd());
  if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address.storage),
              address.length) != 0 &&
      errno != EINPROGRESS) {
    return SystemError("connect");
  }
  return socket;
}

Socket AcceptNonBlocking(const Socket& listener) {
  Socket socket(
      accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) SendAtOnce(socket.fd());
  return socket;
}

}  // namespace outrider::bench
