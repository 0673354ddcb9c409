// SPDX-License-Identifier: Apache-2.0
// Whether the delay proxy keeps its round-trip times: echoes through it, beside
// echoes without it, over one connection and over 200, each of which pauses 50
// ms before an echo, as streams do between their rounds. Exits with 1
// where one connection is off by more than 5 % + 0.3 ms, or 200 are by more
// than 10 % + 0.3 ms.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/network/delay_proxy.h"
#include "bench/network/echo.h"

namespace outrider::bench {
namespace {

using std::chrono::nanoseconds;

double Ms(nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Prints a line; whether it is within bounds.
bool Run(const std::string& target, double round_trip_ms, int num_connections) {
  const double share = num_connections == 1 ? 0.05 : 0.10;
  const nanoseconds nominal(static_cast<int64_t>(1e6 * round_trip_ms));
  const auto proxy =
      DelayProxy::Start({.target = target, .link = {.delay = nominal / 2}});
  if (!proxy.ok()) {
    std::cerr << proxy.status() << "\n";
    return false;
  }
  const int num_echoes =
      std::clamp(static_cast<int>(1000 / (round_trip_ms + 1)), 20, 300);
  const nanoseconds direct =
      MeasureRoundTrips(target, num_connections, num_echoes);
  const nanoseconds proxied =
      MeasureRoundTrips((*proxy)->address(), num_connections, num_echoes);
  const bool is_good =
      std::abs(Ms(proxied) - round_trip_ms) <= share * round_trip_ms + 0.3;
  std::cout << absl::StrFormat("%11d  %7.1f ms  %8.3f ms  %8.3f ms  %s\n",
                               num_connections, round_trip_ms, Ms(proxied),
                               Ms(direct), is_good ? "yes" : "NO");
  return is_good;
}

}  // namespace
}  // namespace outrider::bench

int main() {
  const auto echo = outrider::bench::EchoServer::Start();
  if (!echo.ok()) {
    std::cerr << echo.status() << "\n";
    return 1;
  }
  std::cout << "connections     nominal     achieved   no proxy   in bounds\n";
  bool is_good = true;
  for (const int num_connections : {1, 200}) {
    for (const double round_trip_ms : {0.0, 1.0, 5.0, 20.0, 50.0}) {
      // 200 echoes at once without any delay only measure this machine.
      if (num_connections > 1 && round_trip_ms == 0) continue;
      is_good &= outrider::bench::Run((*echo)->address(), round_trip_ms,
                                      num_connections);
    }
  }
  return is_good ? 0 : 1;
}
