// SPDX-License-Identifier: Apache-2.0
// Whether the tunnel keeps its round-trip times: TCP echoes through it, over
// one connection and over 200, each of which pauses 50 ms before an echo, as
// streams do between their rounds, beside echoes over loopback; and what a
// connection costs to set up, which a tunnel stretches and a proxy does not.
// Exits with 1 where one connection is off by more than 5 % + 0.3 ms, or 200
// are by more than 10 % + 0.3 ms. Needs root.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/network/echo.h"
#include "bench/network/tunnel.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

using std::chrono::nanoseconds;

double Ms(nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

absl::StatusOr<nanoseconds> MeasureConnect(const std::string& address) {
  OUTRIDER_ASSIGN_OR_RETURN(const SocketAddress target, Resolve(address));
  const auto start = std::chrono::steady_clock::now();
  OUTRIDER_RETURN_IF_ERROR(Connect(target, /*blocks=*/true).status());
  return std::chrono::steady_clock::now() - start;
}

absl::StatusOr<bool> RunAll() {
  OUTRIDER_ASSIGN_OR_RETURN(const NetworkNamespace far,
                            NetworkNamespace::Create());
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<Tunnel> tunnel,
                            Tunnel::Start(far, {}));
  OUTRIDER_ASSIGN_OR_RETURN(const auto near_echo, EchoServer::Start());
  std::unique_ptr<EchoServer> far_echo;
  {
    OUTRIDER_ASSIGN_OR_RETURN(const ScopedNamespace entered,
                              ScopedNamespace::Enter(far));
    OUTRIDER_ASSIGN_OR_RETURN(far_echo, EchoServer::Start(tunnel->far_host()));
  }
  std::cout << "connections     nominal     achieved      connect     loopback"
               "   in bounds\n";
  bool is_good = true;
  for (const int num_connections : {1, 200}) {
    for (const double round_trip_ms : {0.0, 1.0, 5.0, 10.0, 20.0, 50.0}) {
      // 200 echoes at once without any delay only measure this machine.
      if (num_connections > 1 && round_trip_ms == 0) continue;
      const nanoseconds nominal(static_cast<int64_t>(1e6 * round_trip_ms));
      OUTRIDER_RETURN_IF_ERROR(tunnel->SetLink({.delay = nominal / 2}));
      const int num_echoes =
          std::clamp(static_cast<int>(1000 / (round_trip_ms + 1)), 20, 300);
      const nanoseconds direct =
          MeasureRoundTrips(near_echo->address(), num_connections, num_echoes);
      const nanoseconds achieved =
          MeasureRoundTrips(far_echo->address(), num_connections, num_echoes);
      OUTRIDER_ASSIGN_OR_RETURN(const nanoseconds connect,
                                MeasureConnect(far_echo->address()));
      const double share = num_connections == 1 ? 0.05 : 0.10;
      const bool is_close =
          std::abs(Ms(achieved) - round_trip_ms) <= share * round_trip_ms + 0.3;
      is_good &= is_close;
      std::cout << absl::StrFormat(
          "%11d  %7.1f ms  %8.3f ms  %8.3f ms  %8.3f ms  %s\n", num_connections,
          round_trip_ms, Ms(achieved), Ms(connect), Ms(direct),
          is_close ? "yes" : "NO");
    }
  }
  return is_good;
}

}  // namespace
}  // namespace outrider::bench

int main() {
  const absl::StatusOr<bool> is_good = outrider::bench::RunAll();
  if (!is_good.ok()) {
    std::cerr << "tunnel_benchmark: " << is_good.status().message() << "\n";
    return 1;
  }
  return *is_good ? 0 : 1;
}
