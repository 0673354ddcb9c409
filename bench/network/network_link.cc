// SPDX-License-Identifier: Apache-2.0
#include "bench/network/network_link.h"

#include <algorithm>
#include <cmath>

namespace outrider::bench {
namespace {

using std::chrono::nanoseconds;

// Two draws with neighbouring keys have nothing in common.
std::mt19937_64 Generator(uint64_t seed, uint64_t connection, uint64_t use) {
  std::seed_seq sequence = {seed, seed >> 32, connection, use};
  return std::mt19937_64(sequence);
}

}  // namespace

bool HasEffect(const LinkOptions& link) {
  return link.delay > nanoseconds(0) || link.jitter > nanoseconds(0) ||
         link.bytes_per_second > 0 || link.mean_bytes_to_drop > 0 ||
         link.mean_bytes_to_reset > 0;
}

LinkOptions DelayAlone(const LinkOptions& link) {
  return {.delay = link.delay, .jitter = link.jitter, .seed = link.seed};
}

absl::Status CheckLink(const LinkOptions& link) {
  if (link.delay < nanoseconds(0) || link.jitter < nanoseconds(0) ||
      link.bytes_per_second < 0 || link.mean_bytes_to_drop < 0 ||
      link.mean_bytes_to_reset < 0) {
    return absl::InvalidArgumentError(
        "delay, jitter, bandwidth and bytes to a drop or reset may not be "
        "negative");
  }
  if (link.jitter > link.delay) {
    return absl::InvalidArgumentError(
        "the jitter may not exceed the delay: nothing arrives before it was "
        "sent");
  }
  return absl::OkStatus();
}

std::optional<PlannedEnd> PlanEnd(const LinkOptions& link,
                                  uint64_t connection) {
  std::mt19937_64 random = Generator(link.seed, connection, /*use=*/2);
  // Both are drawn always: switching one on leaves the other as it was.
  std::exponential_distribution<double> unit;
  const double drop_draw = unit(random);
  const double reset_draw = unit(random);
  const double drop =
      link.mean_bytes_to_drop > 0 ? drop_draw * link.mean_bytes_to_drop : 0;
  const double reset =
      link.mean_bytes_to_reset > 0 ? reset_draw * link.mean_bytes_to_reset : 0;
  if (drop == 0 && reset == 0) return std::nullopt;
  const bool is_reset = reset > 0 && (drop == 0 || reset < drop);
  return PlannedEnd{
      .num_bytes = static_cast<uint64_t>(std::ceil(is_reset ? reset : drop)),
      .is_reset = is_reset};
}

LinkSchedule::LinkSchedule(const LinkOptions& link, uint64_t connection,
                           int direction)
    : link_(link), random_(Generator(link.seed, connection, direction)) {}

LinkSchedule::Clock::time_point LinkSchedule::Arrival(Clock::time_point now,
                                                      size_t num_bytes) {
  nanoseconds sending = {};
  if (link_.bytes_per_second > 0) {
    sending = nanoseconds(static_cast<int64_t>(
        1e9 * static_cast<double>(num_bytes) / link_.bytes_per_second));
  }
  sent_ = std::max(sent_, now) + sending;
  nanoseconds delay = link_.delay;
  if (link_.jitter > nanoseconds(0)) {
    const int64_t jitter = link_.jitter.count();
    delay += nanoseconds(
        std::uniform_int_distribution<int64_t>(-jitter, jitter)(random_));
  }
  last_arrival_ = std::max(last_arrival_, sent_ + delay);
  return last_arrival_;
}

}  // namespace outrider::bench
