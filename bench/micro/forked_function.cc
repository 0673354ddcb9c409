// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/forked_function.h"

#include <sys/socket.h>

#include <array>

#include "bench/network/launch.h"
#include "core/base/check.h"

namespace outrider {

void ForkedFunction::End::Send(const std::string& address) const {
  OUTRIDER_CHECK(send(socket_.fd(), address.data(), address.size(),
                      MSG_NOSIGNAL) == static_cast<ssize_t>(address.size()));
}

std::string ForkedFunction::End::Receive() const {
  std::array<char, 256> buffer;
  const ssize_t size = recv(socket_.fd(), buffer.data(), buffer.size(), 0);
  OUTRIDER_CHECK(size > 0) << "the other end is gone";
  return {buffer.data(), static_cast<size_t>(size)};
}

ForkedFunction::ForkedFunction(absl::FunctionRef<void(const End& end)> act)
    : end_(bench::Socket()) {
  std::array<int, 2> fds = {};
  // Each Send is one message, with its own end.
  OUTRIDER_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds.data()) == 0);
  bench::Socket ours(fds[0]);
  bench::Socket theirs(fds[1]);
  const auto pid = bench::Fork([&] {
    // Or it would not see that ours is gone.
    ours.Close();
    act(End(std::move(theirs)));
  });
  OUTRIDER_CHECK(pid.ok()) << pid.status();
  end_ = End(std::move(ours));
}

}  // namespace outrider
