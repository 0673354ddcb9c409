// SPDX-License-Identifier: Apache-2.0
#include "bench/network/relayed_stream.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace outrider::bench {
namespace {

constexpr size_t kBlockBytes = 64 << 10;
// 50 ms of 2.5 Gbit/s; beyond it the sender waits, as with a full window.
constexpr size_t kMaxQueuedBytes = 16 << 20;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

bool RelayedStream::wants_read() const {
  return !has_ended_ && num_bytes_queued_ < kMaxQueuedBytes;
}

RelayedStream::Outcome RelayedStream::Read(int source, Clock::time_point now) {
  std::array<char, kBlockBytes> buffer;
  while (wants_read()) {
    const ssize_t count = recv(source, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return WouldBlock() ? Outcome::kOk : Outcome::kBroken;
    has_ended_ = count == 0;
    num_bytes_queued_ += count;
    queue_.push_back({.arrival = schedule_.Arrival(now, count),
                      .bytes = std::string(buffer.data(), count)});
  }
  return Outcome::kOk;
}

RelayedStream::Outcome RelayedStream::Write(int sink, Clock::time_point now) {
  is_blocked_ = false;
  while (!queue_.empty() && queue_.front().arrival <= now) {
    const std::string& bytes = queue_.front().bytes;
    if (bytes.empty()) {
      shutdown(sink, SHUT_WR);
      queue_.pop_front();
      continue;
    }
    const ssize_t count = send(sink, bytes.data() + num_first_written_,
                               bytes.size() - num_first_written_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      // Not yet connected reads like a full socket.
      is_blocked_ = WouldBlock() || errno == ENOTCONN;
      return is_blocked_ ? Outcome::kOk : Outcome::kBroken;
    }
    num_first_written_ += count;
    num_bytes_written_ += count;
    num_bytes_queued_ -= count;
    if (num_first_written_ == bytes.size()) {
      queue_.pop_front();
      num_first_written_ = 0;
    }
  }
  return Outcome::kOk;
}

std::optional<RelayedStream::Clock::time_point> RelayedStream::NextArrival()
    const {
  if (queue_.empty()) return std::nullopt;
  return queue_.front().arrival;
}

}  // namespace outrider::bench
