// SPDX-License-Identifier: Apache-2.0
#include "core/testing/silent_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace outrider::testing {

SilentServer::SilentServer(std::chrono::milliseconds before_it_speaks)
    : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  OUTRIDER_CHECK(bind(listener_, any, length) == 0);
  OUTRIDER_CHECK(listen(listener_, 1) == 0);
  OUTRIDER_CHECK(getsockname(listener_, any, &length) == 0);
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  thread_ = std::thread([this, before_it_speaks] { Accept(before_it_speaks); });
}

SilentServer::~SilentServer() {
  shutdown(listener_, SHUT_RDWR);  // ends the wait for the next connection
  thread_.join();
  for (const int connection : connections_) close(connection);
  close(listener_);
}

void SilentServer::Accept(std::chrono::milliseconds before_it_speaks) {
  while (true) {
    const int connection = accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    connections_.push_back(connection);
    std::this_thread::sleep_for(before_it_speaks);
    const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
    // Whoever connected may have given up.
    send(connection, settings.data(), settings.size(), MSG_NOSIGNAL);
  }
}

}  // namespace outrider::testing
