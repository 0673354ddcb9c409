// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/await_verifier.h"

#include "absl/status/status.h"
#include "coordinator/nodes/session_moves.h"
#include "core/base/monotonic_clock.h"

namespace outrider {
namespace {

// A verifier that was replaced is asked anew at once.
constexpr std::chrono::seconds kModelPatience(5);
constexpr std::chrono::milliseconds kModelPause(20);
constexpr std::chrono::milliseconds kHoldPause(100);

}  // namespace

Task<void> AwaitVerifier(SessionPool& pool, Cancellation& cancellation) {
  const auto latest = MonotonicClock::now() + kModelPatience;
  while (!pool.HasVerifier() && !cancellation.cancelled() &&
         MonotonicClock::now() < latest) {
    co_await pool.timer().Sleep(kModelPause, cancellation);
  }
}

Task<absl::StatusOr<SessionNodes>> HoldForVerifier(
    SessionPool& pool, const AssignNodes& assign,
    std::chrono::milliseconds patience, Cancellation& cancellation) {
  const Held held(pool.moves());
  const auto latest = MonotonicClock::now() + patience;
  auto others_since = MonotonicClock::now();
  absl::StatusOr<SessionNodes> nodes = assign();
  while (!nodes.ok() && !cancellation.cancelled() &&
         MonotonicClock::now() < latest &&
         MonotonicClock::now() - others_since <= kModelPatience) {
    if (absl::IsUnavailable(nodes.status())) {
      others_since = MonotonicClock::now();
    }
    co_await pool.timer().Sleep(kHoldPause, cancellation);
    nodes = assign();
  }
  if (cancellation.cancelled()) co_return absl::CancelledError("while it held");
  co_return nodes;
}

}  // namespace outrider
