// SPDX-License-Identifier: Apache-2.0
#include "core/testing/silent_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace outrider::testing {

SilentServer::SilentServer() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  OUTRIDER_CHECK(bind(listener_, any, length) == 0);
  OUTRIDER_CHECK(listen(listener_, 1) == 0);
  OUTRIDER_CHECK(getsockname(listener_, any, &length) == 0);
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  thread_ = std::thread([this] {
    connection_ = accept(listener_, nullptr, nullptr);
    const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
    OUTRIDER_CHECK(write(connection_, settings.data(), settings.size()) == 9);
  });
}

SilentServer::~SilentServer() {
  thread_.join();
  close(connection_);
  close(listener_);
}

}  // namespace outrider::testing
