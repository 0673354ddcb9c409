// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_ECHO_H_
#define OUTRIDER_BENCH_NETWORK_ECHO_H_

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "bench/network/socket.h"

namespace outrider::bench {

// Sends back what it gets, in a thread of its own: what a round trip through a
// DelayProxy or a Tunnel is measured against.
class EchoServer {
 public:
  // Listens on this IPv4 address of the calling thread's network namespace.
  static absl::StatusOr<std::unique_ptr<EchoServer>> Start(
      const std::string& host = "127.0.0.1");
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;
  ~EchoServer();

  const std::string& address() const { return address_; }

 private:
  EchoServer(Socket listener, std::string address);
  void Run();

  const Socket listener_;
  const Socket wake_;
  const std::string address_;
  std::jthread thread_;
};

// Median time of an echo of 64 bytes over one connection, with a pause before
// each; the first one, which connects, does not count. UNAVAILABLE: the
// connection broke.
absl::StatusOr<std::chrono::nanoseconds> MeasureRoundTrip(
    const std::string& address, int num_echoes,
    std::chrono::nanoseconds pause = {});

// The median over connections that echo at the same time, each with a pause of
// 50 ms before an echo where there are several; 0 for one that broke.
std::chrono::nanoseconds MeasureRoundTrips(const std::string& address,
                                           int num_connections, int num_echoes);

// What a link of this round trip may be off by: 5 % + 0.3 ms.
std::chrono::nanoseconds RoundTripTolerance(std::chrono::nanoseconds nominal);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_ECHO_H_
