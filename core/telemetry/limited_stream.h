// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TELEMETRY_LIMITED_STREAM_H_
#define OUTRIDER_CORE_TELEMETRY_LIMITED_STREAM_H_

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace outrider {

// How long a connection may take, from its start on.
struct ExchangeLimits {
  // A probe or a scrape sends its few hundred bytes at once.
  std::chrono::milliseconds request = std::chrono::seconds(1);
  // The same while others wait for the thread.
  std::chrono::milliseconds hurried_request = std::chrono::milliseconds(50);
  // The whole of it, until the reply is taken.
  std::chrono::milliseconds exchange = std::chrono::seconds(5);
};

// One request and its reply on a connection, whose times and size are limited
// as a whole. The library limits each read and write alone, so that who sends a
// byte now and then, or takes one, would keep its thread for ever.
class LimitedStream final : public httplib::Stream {
 public:
  // `others_wait` is asked while the request is waited for.
  explicit LimitedStream(int socket, const ExchangeLimits& limits = {},
                         std::function<bool()> others_wait = {});

  bool is_readable() const override;
  bool is_writable() const override;
  // 0 at the end of what is sent, -1 at a limit.
  ssize_t read(char* data, size_t size) override;
  // All of it, or -1.
  ssize_t write(const char* data, size_t size) override;
  // No page asks whom it is for.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  int socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool Wait(short event, Clock::time_point end) const;

  const int socket_;
  const std::function<bool()> others_wait_;
  const Clock::time_point hurried_request_end_;
  const Clock::time_point request_end_;
  const Clock::time_point exchange_end_;
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;  // of what was received and is not read yet
  size_t end_ = 0;
  size_t num_received_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TELEMETRY_LIMITED_STREAM_H_
