// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_TUNNEL_H_
#define OUTRIDER_BENCH_NETWORK_TUNNEL_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/network/network_link.h"
#include "bench/network/network_namespace.h"

namespace outrider::bench {

// How a network between two namespaces treats packets.
struct TunnelOptions {
  // Delay, jitter, bandwidth and seed, packet by packet and in order; the
  // connections' ends are a DelayProxy's and must be 0 here.
  LinkOptions link = {};
  double loss = 0;  // each packet's chance to vanish, in [0, 1)
  // Packets beyond this many bytes on their way, each direction, are lost, as
  // in a router's buffer.
  size_t queue_bytes = 64 << 20;
  // The third number of its addresses, 198.18.N.1 and .2 (the range that RFC
  // 2544 keeps for benchmarks): each tunnel of a machine needs its own.
  int network = 1;
};

// A network with a true round-trip time between the calling thread's namespace
// and another: whole IP packets are held back between two TUN devices, so that
// handshakes, slow start and windows are stretched as on a wire, which a
// DelayProxy's are not. Two threads of its own do the work. The devices go with
// it, also where the process is killed. The methods are thread-safe.
class Tunnel {
 public:
  struct Counters {
    uint64_t num_packets = 0;  // delivered, both directions
    uint64_t num_lost = 0;     // by chance
    uint64_t num_overflowed = 0;
  };

  // INVALID_ARGUMENT: the options. PERMISSION_DENIED: needs root.
  // UNAVAILABLE: no /dev/net/tun, or the network number is taken.
  static absl::StatusOr<std::unique_ptr<Tunnel>> Start(
      const NetworkNamespace& far, const TunnelOptions& options);
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;
  ~Tunnel();

  // The IPv4 addresses of its two ends.
  const std::string& near_host() const { return near_host_; }
  const std::string& far_host() const { return far_host_; }

  // Holds for packets sent from now on. INVALID_ARGUMENT: nothing changes.
  absl::Status SetLink(const LinkOptions& link);
  Counters counters() const;

 private:
  class Direction;

  Tunnel(std::string near_host, std::string far_host,
         std::unique_ptr<Direction> out, std::unique_ptr<Direction> back);

  const std::string near_host_;
  const std::string far_host_;
  const std::unique_ptr<Direction> out_;
  const std::unique_ptr<Direction> back_;
};

// The median echo through the tunnel, by TCP. FAILED_PRECONDITION: twice the
// link's delay is missed by more than RoundTripTolerance (jitter widens it):
// figures measured through it would carry a wrong label. Needs a tunnel whose
// link has DelayAlone, as to send an echo takes a limited one longer.
absl::StatusOr<std::chrono::nanoseconds> Calibrate(const Tunnel& tunnel,
                                                   const NetworkNamespace& far,
                                                   const LinkOptions& link);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_TUNNEL_H_
