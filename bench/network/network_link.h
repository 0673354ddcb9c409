// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_NETWORK_LINK_H_
#define OUTRIDER_BENCH_NETWORK_NETWORK_LINK_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

#include "absl/status/status.h"

namespace outrider::bench {

// A network as a TCP relay can play it. It ends TCP on both sides: handshake
// and slow start are not stretched, and what is lost is a whole connection.
struct LinkOptions {
  std::chrono::nanoseconds delay = {};   // one way
  std::chrono::nanoseconds jitter = {};  // each block's delay +- up to this
  double bytes_per_second = 0;           // each way; 0: no limit
  // A connection ends after about this many bytes of both directions together,
  // drawn from an exponential law; 0: never. Dropped is closed in order (FIN),
  // reset is broken off (RST) with what is on the way.
  double mean_bytes_to_drop = 0;
  double mean_bytes_to_reset = 0;
  // All that is drawn follows from it and from the connection's number.
  uint64_t seed = 1;
};

// Whether it does anything to what is sent.
bool HasEffect(const LinkOptions& link);
// The same without a limit of bandwidth, whose sending takes time, and without
// ends: what an echo through it is measured by.
LinkOptions DelayAlone(const LinkOptions& link);

// INVALID_ARGUMENT: a negative value, or more jitter than delay.
absl::Status CheckLink(const LinkOptions& link);

// How one connection ends by itself: by the seed, not by what happens.
struct PlannedEnd {
  uint64_t num_bytes = 0;  // both directions together
  bool is_reset = false;
};
std::optional<PlannedEnd> PlanEnd(const LinkOptions& link, uint64_t connection);

// When blocks sent in one direction of one connection arrive. They keep their
// order. Thread-compatible.
class LinkSchedule {
 public:
  using Clock = std::chrono::steady_clock;

  // `direction` is 0 or 1.
  LinkSchedule(const LinkOptions& link, uint64_t connection, int direction);

  // Holds from now on; what was sent keeps its arrival.
  void SetLink(const LinkOptions& link) { link_ = link; }
  // When `num_bytes` handed over at `now`, which never goes back, arrive.
  Clock::time_point Arrival(Clock::time_point now, size_t num_bytes);

 private:
  LinkOptions link_;
  std::mt19937_64 random_;
  Clock::time_point sent_ = {};  // when the last byte had left
  Clock::time_point last_arrival_ = {};
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_NETWORK_LINK_H_
