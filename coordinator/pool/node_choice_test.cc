// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/node_choice.h"

#include <array>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::Optional;

SessionId Session(uint8_t number) {
  SessionId id;
  id.bytes.fill(number);
  return id;
}

TEST(NodeChoiceTest, NobodyIsChosenWhereNobodyIs) {
  EXPECT_EQ(ChooseNode(Session(1), {}), std::nullopt);
}

TEST(NodeChoiceTest, IdleNodesShareTheSessions) {
  const std::vector<NodeCandidate> nodes = {
      {.address = "a:1"}, {.address = "b:1"}, {.address = "c:1"}};
  std::array<int, 3> counts = {};
  for (int i = 0; i < 240; ++i) {
    ++counts[*ChooseNode(Session(static_cast<uint8_t>(i)), nodes)];
  }
  // 80 each, five standard deviations off.
  EXPECT_THAT(counts, Each(Gt(40)));
}

TEST(NodeChoiceTest, ASessionKeepsItsNodeWhenAnotherOneComesOrGoes) {
  const std::vector<NodeCandidate> two = {{.address = "a:1"},
                                          {.address = "b:1"}};
  const std::vector<NodeCandidate> three = {
      {.address = "b:1"}, {.address = "c:1"}, {.address = "a:1"}};
  int num_moved = 0;
  for (int i = 0; i < 240; ++i) {
    const SessionId session = Session(static_cast<uint8_t>(i));
    const auto before = two[*ChooseNode(session, two)].address;
    const auto after = three[*ChooseNode(session, three)].address;
    if (after == before) continue;
    EXPECT_EQ(after, "c:1");  // never from one old node to the other
    ++num_moved;
  }
  EXPECT_THAT(num_moved, Gt(40));
}

TEST(NodeChoiceTest, TheNodeWithFewerSessionsComesFirst) {
  const std::vector<NodeCandidate> nodes = {
      {.address = "a:1", .num_sessions = 3},
      {.address = "b:1", .num_sessions = 2},
      {.address = "c:1", .num_sessions = 3}};
  for (uint8_t i = 0; i < 20; ++i) {
    EXPECT_THAT(ChooseNode(Session(i), nodes), Optional(1u));
  }
}

TEST(NodeChoiceTest, ADoubtfulNodeComesLastAndIsBetterThanNone) {
  const std::vector<NodeCandidate> nodes = {
      {.address = "a:1", .is_doubtful = true},
      {.address = "b:1", .num_sessions = 100}};
  for (uint8_t i = 0; i < 20; ++i) {
    EXPECT_THAT(ChooseNode(Session(i), nodes), Optional(1u));
    EXPECT_THAT(
        ChooseNode(Session(i), {{.address = "a:1", .is_doubtful = true}}),
        Optional(0u));
  }
}

}  // namespace
}  // namespace outrider
