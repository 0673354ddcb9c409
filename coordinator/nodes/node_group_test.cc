// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/node_group.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/monotonic_clock.h"
#include "core/base/node_drains.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using enum NodeState;

const char kName[] = "verifier:7002";

const absl::Status kLate = absl::DeadlineExceededError("late");
const absl::Status kGone = absl::UnavailableError("gone");

// Nodes that nobody ever connects to.
class NodeGroupTest : public ::testing::Test {
 protected:
  static std::unique_ptr<VerifierNode> Make(const std::string& name,
                                            const std::string& address) {
    return std::unique_ptr<VerifierNode>(new VerifierNode{
        .link = {.name = name, .address = address, .is_connected = [] {
                   return false;
                 }}});
  }

  // All are asked, and answer so; then what follows for each.
  std::vector<NodeState> Answer(const absl::StatusOr<NodeDescription>& answer) {
    for (const VerifierNode* node : group_.TakeToAsk()) {
      group_.Learn(*node, answer);
    }
    return States();
  }
  std::vector<NodeState> States() {
    AssessVerifiers(group_.knowledge(), /*terms=*/{}, tokenizer_hash_);
    std::vector<NodeState> states;
    for (const NodeKnowledge* node : group_.knowledge()) {
      states.push_back(node->state());
    }
    return states;
  }

  std::string tokenizer_hash_;
  NodeGroup<VerifierNode> group_{
      {kName}, [](const std::string& name, const std::string& address) {
        return Make(name, address);
      }};
  const NodeDescription fit_ = {.weights_hash = "weights",
                                .vocab_size = 10,
                                .context_length = 10,
                                .reply_formats = {ReplyFormat::kFull}};
};

TEST_F(NodeGroupTest, ANodeIsNotAskedAgainBeforeItHasAnswered) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  const auto asked = group_.TakeToAsk();
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_THAT(group_.TakeToAsk(), IsEmpty());
  group_.Learn(*asked[0], fit_);
  EXPECT_THAT(group_.TakeToAsk(), SizeIs(1));
}

TEST_F(NodeGroupTest, OneLateAnswerIsForgivenAndTheSecondIsNot) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  EXPECT_THAT(Answer(kLate), ElementsAre(kReady));
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  EXPECT_THAT(Answer(kLate), ElementsAre(kReady));
  EXPECT_THAT(Answer(kLate), ElementsAre(kNotReady));
  EXPECT_THAT(Answer(kLate), ElementsAre(kNotReady));
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  EXPECT_THAT(Answer(kGone), ElementsAre(kNotReady));
}

// Its sessions have put it out, and it never was not ready.
TEST_F(NodeGroupTest, ANodeThatHungForASecondTakesSessionsOnceItIsHeardAgain) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  Answer(fit_);
  VerifierNode* node = group_.TakeToAsk().front();
  node->link.pulse.GiveUp();
  const auto now = MonotonicClock::now();
  node->PutOut(now);
  group_.Learn(*node, kLate);
  EXPECT_THAT(States(), ElementsAre(kReady));
  EXPECT_GT(node->out_until.load(), now);
  Answer(fit_);
  EXPECT_LE(node->out_until.load(), now);
}

// It may answer this while steps hang.
TEST_F(NodeGroupTest, ANodeThatWasAlwaysHeardStaysOutForAsLongAsItWasPut) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  Answer(fit_);
  VerifierNode* node = group_.TakeToAsk().front();
  const auto now = MonotonicClock::now();
  node->PutOut(now);
  group_.Learn(*node, fit_);
  EXPECT_GT(node->out_until.load(), now);
}

// Sessions may be waiting for one that is gone.
TEST_F(NodeGroupTest, ANodeThatIsGoneIsAskedFourTimesASecond) {
  MonotonicClock::time_point now{std::chrono::seconds(1000)};
  const MonotonicClock::Shows shows(now);
  group_.SetAddresses(kName, {"10.0.0.1:7002", "10.0.0.2:7002"});
  const auto asked = group_.TakeToAsk();
  group_.Learn(*asked[0], fit_);
  group_.Learn(*asked[1], kGone);
  now += NodeGroup<VerifierNode>::kGonePeriod - std::chrono::milliseconds(1);
  EXPECT_THAT(group_.TakeQuiet(), IsEmpty());
  now += std::chrono::milliseconds(1);
  EXPECT_THAT(group_.TakeQuiet(), ElementsAre(asked[1]));
  EXPECT_THAT(group_.TakeQuiet(), IsEmpty());
  group_.Learn(*asked[1], fit_);
  now += NodeGroup<VerifierNode>::kGonePeriod;
  EXPECT_THAT(group_.TakeQuiet(), IsEmpty());
}

TEST_F(NodeGroupTest, LinksKnowWhetherAnotherOfTheirModelIsReady) {
  group_.SetAddresses(kName, {"10.0.0.1:7002", "10.0.0.2:7002"});
  EXPECT_EQ(group_.CountReady(), 0);
  auto asked = group_.TakeToAsk();
  group_.Learn(*asked[0], fit_);
  group_.Learn(*asked[1], kGone);
  EXPECT_THAT(States(), ElementsAre(kReady, kNotReady));
  EXPECT_EQ(group_.CountReady(), 1);
  group_.FindOthers();
  EXPECT_FALSE(asked[0]->link.has_other);
  EXPECT_FALSE(asked[1]->link.has_other);  // it has not said what it is
  const auto is_other_of = [&](const absl::StatusOr<NodeDescription>& answer) {
    asked = group_.TakeToAsk();
    group_.Learn(*asked[0], fit_);
    group_.Learn(*asked[1], answer);
    States();
    group_.FindOthers();
    return std::pair<bool, bool>(asked[0]->link.has_other,
                                 asked[1]->link.has_other);
  };
  EXPECT_EQ(is_other_of(fit_), std::pair(true, true));
  EXPECT_EQ(is_other_of(kGone), std::pair(false, true));
  NodeDescription other = fit_;
  other.weights_hash = "others";
  EXPECT_EQ(is_other_of(other), std::pair(false, false));
}

// Its last replies may say it too late, or to nobody.
TEST_F(NodeGroupTest, ANodeThatSaysThatItDrainsIsLeaving) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  Answer(fit_);
  const VerifierNode* node = group_.Choose(SessionId::Random()).seat.get();
  Answer(kGone);
  EXPECT_FALSE(node->link.is_leaving);
  EXPECT_THAT(Answer(NodeDrainsError()), ElementsAre(kNotReady));
  EXPECT_TRUE(node->link.is_leaving);
  Answer(kGone);
  EXPECT_TRUE(node->link.is_leaving);
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  EXPECT_FALSE(node->link.is_leaving);
}

TEST_F(NodeGroupTest, ANodeThatHasLeftStaysUntilItsLastSessionHas) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  Answer(fit_);
  auto [seat, description, is_doubtful] = group_.Choose(SessionId::Random());
  ASSERT_NE(seat, nullptr);
  EXPECT_EQ(description.weights_hash, "weights");
  group_.SetAddresses(kName, {"10.0.0.2:7002"});
  EXPECT_THAT(States(), ElementsAre(kLeaving, kNotReady));
  EXPECT_EQ(group_.Choose(SessionId::Random()).seat, nullptr);
  group_.DropUnused();
  EXPECT_EQ(seat->link.address, "10.0.0.1:7002");
  seat.reset();
  group_.DropUnused();
  EXPECT_THAT(States(), ElementsAre(kNotReady));
}

TEST_F(NodeGroupTest, ANodeThatComesBackIsAskedBeforeItIsBelieved) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  group_.SetAddresses(kName, {"10.0.0.2:7002"});
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  EXPECT_THAT(States(), ElementsAre(kNotReady, kLeaving));
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady, kLeaving));
}

// A mistake in DNS, or a resolver that knows nothing for a moment, says nothing
// of nodes that are there.
TEST_F(NodeGroupTest, NodesOfANameThatIsGoneStayWhileTheyAnswer) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  group_.SetAddresses(kName, {});
  EXPECT_THAT(States(), ElementsAre(kReady));
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  EXPECT_NE(group_.Choose(SessionId::Random()).seat, nullptr);
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  EXPECT_THAT(Answer(kGone), ElementsAre(kNotReady));
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));

  group_.SetAddresses(kName, {});
  EXPECT_THAT(Answer(kGone), ElementsAre(kLeaving));
  group_.DropUnused();
  EXPECT_THAT(States(), IsEmpty());
}

// Its breaker may have grown a pause of half a minute meanwhile.
TEST_F(NodeGroupTest, ADrafterThatReturnsIsTriedAgainAtOnce) {
  NodeGroup<DrafterNode> drafters(
      {kName}, [](const std::string& name, const std::string& address) {
        return std::unique_ptr<DrafterNode>(new DrafterNode{
            .link = {.name = name, .address = address, .is_connected = [] {
                       return false;
                     }}});
      });
  drafters.SetAddresses(kName, {"10.0.0.1:7001"});
  const auto now = CircuitBreaker::Clock::now();
  const auto answer = [&](const absl::StatusOr<NodeDescription>& description) {
    DrafterNode* drafter = drafters.TakeToAsk().front();
    drafters.Learn(*drafter, description);
    return drafter->breaker.IsOpen(now);
  };
  EXPECT_FALSE(answer(fit_));
  DrafterNode* drafter = drafters.TakeToAsk().front();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(drafter->breaker.Allow(now));
    drafter->breaker.Failure(now, {});
  }
  drafters.Learn(*drafter, fit_);  // it has not been away, for all we know
  EXPECT_TRUE(drafter->breaker.IsOpen(now));
  EXPECT_TRUE(answer(kGone));
  EXPECT_FALSE(answer(fit_));
}

TEST_F(NodeGroupTest, ANameOfAnotherGroupChangesNothing) {
  group_.SetAddresses("drafter:7001", {"10.0.0.1:7001"});
  EXPECT_THAT(States(), IsEmpty());
  EXPECT_TRUE(group_.IsServed("drafter:7001"));
  EXPECT_FALSE(group_.IsServed(kName));
}

TEST_F(NodeGroupTest, ANodeThatAnswersAsAnotherModelIsNotReadyUntilItSaysSo) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  const auto seat = group_.Choose(SessionId::Random()).seat;
  EXPECT_FALSE(group_.Doubt(*seat, fit_.identity()));
  EXPECT_THAT(States(), ElementsAre(kReady));
  EXPECT_TRUE(group_.Doubt(*seat, {.weights_hash = "others"}));
  EXPECT_THAT(States(), ElementsAre(kNotReady));
  NodeDescription other = fit_;
  other.weights_hash = "others";
  EXPECT_THAT(Answer(other), ElementsAre(kReady));
  EXPECT_FALSE(group_.Doubt(*seat, other.identity()));
}

TEST_F(NodeGroupTest, WhatANodeSaysBetweenTwoQuestionsHoldsWhileItAnswersThem) {
  group_.SetAddresses(kName, {"10.0.0.1:7002"});
  EXPECT_THAT(Answer(fit_), ElementsAre(kReady));
  const auto seat = group_.Choose(SessionId::Random()).seat;
  NodeDescription smaller = fit_;
  smaller.kv_cache_tokens = 5;
  group_.Correct(*seat, smaller);
  EXPECT_THAT(States(), ElementsAre(kReady));
  EXPECT_EQ(group_.Choose(SessionId::Random()).description, smaller);
  EXPECT_THAT(Answer(kGone), ElementsAre(kNotReady));
  group_.Correct(*seat, smaller);
  EXPECT_THAT(States(), ElementsAre(kNotReady));
}

}  // namespace
}  // namespace outrider
