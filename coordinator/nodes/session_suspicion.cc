// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_suspicion.h"

#include <chrono>

#include "absl/status/status.h"

namespace outrider {
namespace {

constexpr std::chrono::milliseconds kIsolateTimeout(500);
// So often a node may be too busy to answer that in time: who then comes in is
// not alone, and what it takes down counts for nothing.
constexpr int kMostUnanswered = 4;
// Verifiers that are lost by one cause are lost within so long.
constexpr std::chrono::milliseconds kOneCause(1000);

}  // namespace

Task<bool> SessionSuspicion::Isolate(VerifierNode& node,
                                     Cancellation& cancellation) {
  const auto granted =
      co_await node.stub->Isolate(session_, kIsolateTimeout, cancellation);
  const bool is_unanswered = absl::IsDeadlineExceeded(granted.status());
  num_unanswered_ = is_unanswered ? num_unanswered_ + 1 : 0;
  if (is_unanswered && num_unanswered_ < kMostUnanswered) co_return false;
  num_unanswered_ = 0;
  // An older node knows no suspects of others. One that does not answer is
  // found to be lost or late by the step, which then says nothing of the
  // session.
  is_alone_ = granted.ok() || absl::IsUnimplemented(granted.status());
  co_return !granted.ok() || *granted;
}

void SessionSuspicion::Answered() {
  num_lost_ = 0;
  losses_.clear();
}

Task<bool> SessionSuspicion::IsConvictedByLoss(const VerifierNode& node,
                                               Cancellation& cancellation) {
  losses_.push_back(pool_.losses().Met(node.link.address, Clock::now()));
  // A suspect that did not come in alone is none for what it met there.
  if (is_suspect() && !is_alone_) co_return false;
  if (++num_lost_ < kMaxLost) co_return false;
  if (num_lost_ == kMaxLost) {
    const VerifierLosses& losses = pool_.losses();
    if (!losses.HasOther(losses_, Clock::now())) {
      co_await pool_.timer().Sleep(kOneCause, cancellation);
    }
    if (cancellation.cancelled() || losses.HasOther(losses_, Clock::now())) {
      co_return false;
    }
  }
  pool_.losses().Forget(losses_);
  co_return true;
}

}  // namespace outrider
