// SPDX-License-Identifier: Apache-2.0
#include "core/session/released_openings.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(ReleasedOpeningsTest, CoversTheStepsOfASessionUpToTheLastReleased) {
  ReleasedOpenings released;
  const SessionId session = SessionId::Random();
  EXPECT_FALSE(released.Covers(session, 1));
  released.Add(session, 5);
  released.Add(session, 3);
  EXPECT_TRUE(released.Covers(session, 5));
  EXPECT_FALSE(released.Covers(session, 6));
  EXPECT_FALSE(released.Covers(SessionId::Random(), 5));
}

TEST(ReleasedOpeningsTest, TheLongestKnownAreForgottenFirst) {
  ReleasedOpenings released;
  std::vector<SessionId> sessions(ReleasedOpenings::kCapacity + 1);
  for (SessionId& session : sessions) {
    session = SessionId::Random();
    released.Add(session, 1);
    released.Add(session, 1);
  }
  EXPECT_FALSE(released.Covers(sessions.front(), 1));
  EXPECT_TRUE(released.Covers(sessions[1], 1));
  EXPECT_TRUE(released.Covers(sessions.back(), 1));
}

}  // namespace
}  // namespace outrider
