// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_DELAY_PROXY_H_
#define OUTRIDER_BENCH_NETWORK_DELAY_PROXY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/network/network_link.h"

namespace outrider::bench {

// A TCP relay in front of one address that plays a network: delay, jitter,
// bandwidth, connections dropped and reset. Needs no privileges. One thread of
// its own does all the work; the methods are thread-safe.
class DelayProxy {
 public:
  struct Options {
    std::string target = {};  // HOST:PORT
    LinkOptions link = {};
  };
  struct Counters {
    int num_connections = 0;
    int num_dropped = 0;
    int num_reset = 0;
    uint64_t num_bytes = 0;  // delivered, both directions
  };

  // INVALID_ARGUMENT: the link; UNAVAILABLE: the target's name, or no port.
  static absl::StatusOr<std::unique_ptr<DelayProxy>> Start(
      const Options& options);
  DelayProxy(const DelayProxy&) = delete;
  DelayProxy& operator=(const DelayProxy&) = delete;
  // Closes all connections.
  ~DelayProxy();

  // HOST:PORT, on loopback.
  const std::string& address() const;
  // Sets the link for what is sent from now on, on connections old and new;
  // their planned ends stay as they were. INVALID_ARGUMENT: nothing changes.
  absl::Status SetLink(const LinkOptions& link);
  Counters counters() const;

 private:
  class Relay;

  explicit DelayProxy(std::unique_ptr<Relay> relay);

  const std::unique_ptr<Relay> relay_;
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_DELAY_PROXY_H_
