// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_SESSION_ROUNDS_H_
#define OUTRIDER_CORE_TESTING_SESSION_ROUNDS_H_

#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "core/session/node_sessions.h"
#include "gtest/gtest.h"

namespace outrider::testing {

using Admission = absl::StatusOr<NodeSessions::Outcome>;

// Nothing: it is no miss.
inline std::optional<MissReason> ReasonOf(const Admission& admission) {
  if (!admission.ok() || !std::holds_alternative<Miss>(*admission)) return {};
  return std::get<Miss>(*admission).reason;
}
inline bool IsAdmitted(const Admission& admission) {
  return admission.ok() && std::holds_alternative<NodeSession*>(*admission);
}
// What a round does with the session that it was given.
inline void RunRound(NodeSessions& sessions, const Admission& admission,
                     const TokenSeq& tokens,
                     NodeSessions::Clock::time_point end) {
  NodeSession& session = *std::get<NodeSession*>(*admission);
  EXPECT_TRUE(sessions.IsConsistent());
  sessions.Extended(session, tokens);
  EXPECT_TRUE(sessions.IsConsistent());
  sessions.EndRound(session, end);
  EXPECT_TRUE(sessions.IsConsistent());
}

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_SESSION_ROUNDS_H_
