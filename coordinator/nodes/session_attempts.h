// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_ATTEMPTS_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_ATTEMPTS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "coordinator/nodes/session_moves.h"
#include "coordinator/nodes/session_verifier.h"
#include "coordinator/nodes/waiting_room.h"
#include "core/wire/node_calls.h"

namespace outrider {

struct SessionVerifier::Attempts {
  // A session that holds pauses so long before its second attempt.
  static constexpr std::chrono::milliseconds kFirstPause{20};
  // How long a node may say what it is, and break off each step of a stream
  // that has nowhere else to go. That leaves its client half of the minute in
  // which it tries other coordinators.
  static constexpr std::chrono::seconds kBrokenOffPatience{30};

  explicit Attempts(const VerifyCall& step)
      : call(step), is_open(!step.header.incarnation.is_none()) {}

  // Told how each attempt has ended.
  bool IsBrokenOffForLong(bool is_broken_off) {
    if (!is_broken_off) broken_off_since.reset();
    if (is_broken_off && !broken_off_since.has_value()) {
      broken_off_since = Clock::now();
    }
    return is_broken_off &&
           Clock::now() - *broken_off_since > kBrokenOffPatience;
  }

  const VerifyCall& call;
  const bool is_open;  // where it is, or was
  uint64_t number = 0;
  std::optional<Held> held = {};
  std::unique_ptr<WaitingRoom::Place> place = nullptr;  // once it has begun
  std::optional<Clock::time_point> unserved_since = {};
  std::optional<Clock::time_point> broken_off_since = {};
  Nodes full = {};  // those that have refused it since it slept
  std::chrono::milliseconds pause = kFirstPause;
  int num_broken = 0, num_misplaced = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_ATTEMPTS_H_
