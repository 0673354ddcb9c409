// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/node_choice.h"

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::Le;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr absl::string_view kNoSalt = "";

SessionId SessionNumbered(uint8_t number) {
  SessionId id;
  id.bytes.fill(number);
  return id;
}

TEST(NodeChoiceTest, NobodyIsChosenWhereNobodyIs) {
  EXPECT_EQ(ChooseNode(SessionNumbered(1), kNoSalt, {}), std::nullopt);
}

TEST(NodeChoiceTest, IdleNodesShareTheSessions) {
  const std::vector<NodeCandidate> nodes = {
      {.address = "a:1"}, {.address = "b:1"}, {.address = "c:1"}};
  std::array<int, 3> counts = {};
  for (int i = 0; i < 240; ++i) {
    ++counts[*ChooseNode(SessionNumbered(static_cast<uint8_t>(i)), kNoSalt,
                         nodes)];
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
    const SessionId session = SessionNumbered(static_cast<uint8_t>(i));
    const auto before = two[*ChooseNode(session, kNoSalt, two)].address;
    const auto after = three[*ChooseNode(session, kNoSalt, three)].address;
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
    EXPECT_THAT(ChooseNode(SessionNumbered(i), kNoSalt, nodes), Optional(1u));
  }
}

TEST(NodeChoiceTest, ADoubtfulNodeComesLastAndIsBetterThanNone) {
  const std::vector<NodeCandidate> nodes = {
      {.address = "a:1", .is_doubtful = true},
      {.address = "b:1", .num_sessions = 100}};
  for (uint8_t i = 0; i < 20; ++i) {
    EXPECT_THAT(ChooseNode(SessionNumbered(i), kNoSalt, nodes), Optional(1u));
    EXPECT_THAT(ChooseNode(SessionNumbered(i), kNoSalt,
                           {{.address = "a:1", .is_doubtful = true}}),
                Optional(0u));
  }
}

// The address that a session with this salt comes to.
absl::string_view HomeOf(absl::string_view salt, int session,
                         absl::Span<const NodeCandidate> nodes) {
  return nodes[*ChooseNode(SessionNumbered(static_cast<uint8_t>(session)), salt,
                           nodes)]
      .address;
}

TEST(NodeChoiceTest, SessionsOfOneSaltMeetAndThoseOfOthersSpread) {
  // Some busier than others, but none by much.
  const std::vector<NodeCandidate> nodes = {
      {.address = "a:1", .num_sessions = 8},
      {.address = "b:1", .num_sessions = 9},
      {.address = "c:1", .num_sessions = 10}};
  std::map<absl::string_view, int> counts;
  for (int salt = 0; salt < 240; ++salt) {
    const std::string name = absl::StrCat("tenant ", salt);
    const absl::string_view home = HomeOf(name, 0, nodes);
    ++counts[home];
    for (int session = 1; session < 5; ++session) {
      EXPECT_EQ(HomeOf(name, session, nodes), home);
    }
  }
  EXPECT_THAT(counts, SizeIs(3));
  EXPECT_THAT(counts, Each(Pair(_, Gt(40))));
}

TEST(NodeChoiceTest, ASaltsNodeTakesAtMostAQuarterMoreThanTheMean) {
  std::vector<NodeCandidate> nodes = {
      {.address = "a:1"}, {.address = "b:1"}, {.address = "c:1"}};
  for (int i = 0; i < 99; ++i) {
    const auto chosen =
        ChooseNode(SessionNumbered(static_cast<uint8_t>(i)), "s", nodes);
    ++nodes[*chosen].num_sessions;
  }
  // The mean is 33, and the second in the salt's order is full as well.
  EXPECT_THAT(nodes,
              UnorderedElementsAre(
                  Field(&NodeCandidate::num_sessions, AllOf(Ge(40), Le(42))),
                  Field(&NodeCandidate::num_sessions, AllOf(Ge(40), Le(42))),
                  Field(&NodeCandidate::num_sessions, AllOf(Ge(15), Le(19)))));
}

TEST(NodeChoiceTest, ASaltBringsNoSessionToADoubtfulNode) {
  std::vector<NodeCandidate> nodes = {{.address = "a:1"}, {.address = "b:1"}};
  const auto home = ChooseNode(SessionNumbered(1), "s", nodes);
  nodes[*home].is_doubtful = true;
  nodes[1 - *home].num_sessions = 100;
  EXPECT_THAT(ChooseNode(SessionNumbered(1), "s", nodes), Optional(1 - *home));
  nodes[1 - *home].is_doubtful = true;
  EXPECT_THAT(ChooseNode(SessionNumbered(1), "s", nodes), Optional(*home));
}

// n0:1, n1:1, ...
std::vector<std::string> Addresses(int count) {
  std::vector<std::string> addresses(count);
  for (int i = 0; i < count; ++i) addresses[i] = absl::StrCat("n", i, ":1");
  return addresses;
}
std::vector<NodeCandidate> IdleNodes(
    const std::vector<std::string>& addresses) {
  std::vector<NodeCandidate> nodes(addresses.size());
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].address = addresses[i];
  return nodes;
}

TEST(NodeChoiceTest, WhoComesAgainWithADrawnSaltComesToItsNode) {
  const std::vector<std::string> addresses = Addresses(64);
  const std::vector<NodeCandidate> nodes = IdleNodes(addresses);
  std::set<std::string> salts;
  for (int i = 0; i < 30; ++i) {
    const size_t home = i % nodes.size();
    const std::string salt = DrawSalt(SessionId::Random(), home, nodes);
    EXPECT_EQ(HomeOf(salt, i, nodes), nodes[home].address);
    EXPECT_TRUE(salts.insert(salt).second);
  }
}

TEST(NodeChoiceTest, OfVeryManyNodesASaltIsDrawnAllTheSame) {
  const std::vector<std::string> addresses = Addresses(5000);
  EXPECT_THAT(DrawSalt(SessionNumbered(1), 0, IdleNodes(addresses)),
              SizeIs(Ge(32u)));
}

}  // namespace
}  // namespace outrider
