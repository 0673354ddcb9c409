// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/limited_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace outrider {
namespace {

constexpr size_t kMaxRequestBytes = 16 << 10;
constexpr std::chrono::milliseconds kLook(50);

}  // namespace

LimitedStream::LimitedStream(int socket, const ExchangeLimits& limits,
                             std::function<bool()> others_wait)
    : socket_(socket),
      others_wait_(std::move(others_wait)),
      hurried_request_end_(Clock::now() + limits.hurried_request),
      request_end_(Clock::now() + limits.request),
      exchange_end_(Clock::now() + limits.exchange) {}

bool LimitedStream::is_readable() const {
  if (begin_ < end_) return true;
  // Others may begin to wait at any time.
  while (Clock::now() < request_end_) {
    const auto next = std::max(hurried_request_end_, Clock::now() + kLook);
    if (Wait(POLLIN, std::min(next, request_end_))) return true;
    if (others_wait_ && others_wait_()) return false;
  }
  return false;
}

bool LimitedStream::is_writable() const { return Wait(POLLOUT, exchange_end_); }

ssize_t LimitedStream::read(char* data, size_t size) {
  if (begin_ == end_) {
    if (num_received_ >= kMaxRequestBytes || !is_readable()) return -1;
    const ssize_t count =
        recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (count <= 0) return count;
    begin_ = 0;
    end_ = static_cast<size_t>(count);
    num_received_ += end_;
  }
  const size_t count = std::min(size, end_ - begin_);
  std::copy_n(buffer_.data() + begin_, count, data);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t LimitedStream::write(const char* data, size_t size) {
  for (size_t sent = 0; sent < size;) {
    if (!is_writable()) return -1;
    const ssize_t count =
        send(socket_, data + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return -1;
    sent += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(size);
}

// Whether the socket is ready, or has failed, before the time is out.
bool LimitedStream::Wait(short event, Clock::time_point end) const {
  pollfd waited = {.fd = socket_, .events = event, .revents = 0};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    const int ready = poll(&waited, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace outrider
