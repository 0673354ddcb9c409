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

  explicit Attempts(const VerifyCall& step)
      : call(step), is_open(!step.header.incarnation.is_none()) {}

  const VerifyCall& call;
  const bool is_open;  // where it is, or was
  uint64_t number = 0;
  std::optional<Held> held = {};
  std::unique_ptr<WaitingRoom::Place> place = nullptr;  // once it has begun
  std::optional<Clock::time_point> unserved_since = {};
  Nodes full = {};  // those that have refused it since it slept
  std::chrono::milliseconds pause = kFirstPause;
  int num_broken = 0, num_misplaced = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_ATTEMPTS_H_
