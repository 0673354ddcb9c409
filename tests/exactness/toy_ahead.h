// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_TOY_AHEAD_H_
#define OUTRIDER_TESTS_EXACTNESS_TOY_AHEAD_H_

#include <chrono>

#include "coordinator/peers/ahead_draft_client.h"
#include "core/base/monotonic_clock.h"

namespace outrider::testing {

// What production puts in front of a session's drafter, by a clock that stands
// still: what it chooses follows from past rounds alone.
class ToyAhead {
 public:
  ToyAhead(NodeDraftClient& node, Schedule schedule)
      : control_(schedule),
        optional_(
            [this, &node](Session&) {
              return std::optional(OptionalDraftClient::Drafter{
                  .node = node, .breaker = breaker_, .control = control_});
            },
            DraftLengthMode::kFixed),
        client_(optional_, schedule) {}

  AheadDraftClient& client() { return client_; }

 private:
  const MonotonicClock::time_point now_{std::chrono::hours(1)};
  const MonotonicClock::Shows shows_{now_};
  CircuitBreaker breaker_;
  DraftLengthControl control_;
  OptionalDraftClient optional_;
  AheadDraftClient client_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_TOY_AHEAD_H_
