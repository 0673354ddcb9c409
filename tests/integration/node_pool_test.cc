// SPDX-License-Identifier: Apache-2.0
// The coordinator's pool over names with several nodes behind them, as they
// come, go and change. The nodes are real services; only the names are a
// script.
#include "coordinator/pool/node_pool.h"

#include <chrono>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/nodes/refusal_reasons.h"
#include "core/base/error_reason.h"
#include "core/testing/own_loopback.h"
#include "core/testing/scripted_resolver.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using enum NodeState;

constexpr int kPoolVocab = 20;
const char kVerifiers[] = "verifiers:7002";
const char kDrafters[] = "drafters:7001";

TableLm::Options Model() {
  return {.table =
              [](absl::Span<const TokenId> context) {
                return HashTarget(context, kPoolVocab);
              },
          .vocab_size = kPoolVocab,
          .context_length = 100};
}

NodeDescription Description(const std::string& weights_hash,
                            const std::string& numerics = "") {
  return {.model_name = "table",
          .weights_hash = weights_hash,
          .vocab_size = kPoolVocab,
          .context_length = 100,
          .max_draft_tokens = 8,
          .reply_formats = {ReplyFormat::kFull},
          .numerics = numerics};
}

std::unique_ptr<LocalNode> Verifier(const std::string& weights_hash = "A",
                                    const std::string& listen = OwnLoopback(),
                                    const std::string& numerics = "") {
  return MakeVerifier(Model(), Description(weights_hash, numerics),
                      {.listen = listen});
}

std::unique_ptr<LocalNode> Drafter() {
  return MakeDrafter(Model(), Description("draft"));
}

class NodePoolTest : public ::testing::Test {
 protected:
  NodePoolTest() { SetUpGrpc(); }

  void Start() {
    pool_.emplace(options_, queue_, resolver_);
    pool_->Start();
  }

  // Nodes are asked once a second.
  static ::testing::AssertionResult Becomes(
      const std::function<bool()>& condition) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) {
        return ::testing::AssertionFailure() << "not within 10 s";
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return ::testing::AssertionSuccess();
  }
  ::testing::AssertionResult BecomeReady(int num_verifiers, int num_drafters) {
    return Becomes([&] {
      return pool_->CountVerifiers(kReady) == num_verifiers &&
             pool_->CountDrafters(kReady) == num_drafters;
    });
  }

  SessionNodes Assign() {
    auto pair = pool_->Assign(SessionId::Random());
    EXPECT_THAT(pair, IsOk());
    return *std::move(pair);
  }
  // How many of eight sessions at once each verifier gets.
  std::map<std::string, int> Spread() {
    std::vector<SessionNodes> pairs;
    std::map<std::string, int> counts;
    for (int i = 0; i < 8; ++i) {
      pairs.push_back(Assign());
      ++counts[pairs.back().verifier->node().link.address];
    }
    return counts;
  }

  NodePool::Options options_ = {
      .drafters = {kDrafters},
      .verifiers = {kVerifiers},
      .resolve_period = std::chrono::milliseconds(20)};
  ScriptedResolver resolver_;
  CallQueue queue_{/*num_threads=*/2};
  std::optional<NodePool> pool_;
};

TEST_F(NodePoolTest, EveryAddressOfANameIsANodeAndSessionsSpreadOverThem) {
  const auto v1 = Verifier(), v2 = Verifier();
  const auto d1 = Drafter(), d2 = Drafter();
  resolver_.Set(kVerifiers, {{v1->address(), v2->address()}});
  resolver_.Set(kDrafters, {{d1->address(), d2->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(2, 2));
  std::map<std::string, int> drafters;
  std::vector<SessionNodes> pairs;
  for (int i = 0; i < 8; ++i) {
    pairs.push_back(Assign());
    ++drafters[pairs.back().drafter->node().link.address];
  }
  EXPECT_EQ(drafters[d1->address()], 4);
  EXPECT_EQ(drafters[d2->address()], 4);
  pairs.clear();
  const auto verifiers = Spread();
  EXPECT_EQ(verifiers.at(v1->address()), 4);
  EXPECT_EQ(verifiers.at(v2->address()), 4);
}

TEST_F(NodePoolTest, SessionsOfOneSaltComeToOnePairAfterAnother) {
  const auto v1 = Verifier(), v2 = Verifier();
  const auto d1 = Drafter(), d2 = Drafter();
  resolver_.Set(kVerifiers, {{v1->address(), v2->address()}});
  resolver_.Set(kDrafters, {{d1->address(), d2->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(2, 2));
  // The turns of a chat: each begins when the one before has ended.
  std::set<std::string> verifiers, drafters;
  for (int turn = 0; turn < 8; ++turn) {
    const auto pair = pool_->Assign(SessionId::Random(), {}, "a user");
    ASSERT_THAT(pair, IsOk());
    verifiers.insert(pair->verifier->node().link.address);
    drafters.insert(pair->drafter->node().link.address);
  }
  EXPECT_THAT(verifiers, SizeIs(1));
  EXPECT_THAT(drafters, SizeIs(1));
}

TEST_F(NodePoolTest, AStreamIsResumedAtTheVerifierThatItHad) {
  const auto v1 = Verifier(), v2 = Verifier(), v3 = Verifier();
  resolver_.Set(kVerifiers, {{v1->address(), v2->address(), v3->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(3, 0));
  std::map<std::string, std::string> begun_at;  // by their salts
  for (int i = 0; i < 8; ++i) {
    const auto begun = pool_->Assign(SessionId::Random());
    ASSERT_THAT(begun, IsOk());
    begun_at[begun->cache_salt] = begun->verifier->node().link.address;
  }
  EXPECT_THAT(begun_at, SizeIs(8));
  for (const auto& [salt, address] : begun_at) {
    const auto resumed = pool_->Assign(SessionId::Random(), {}, salt);
    ASSERT_THAT(resumed, IsOk());
    EXPECT_EQ(resumed->cache_salt, salt);
    EXPECT_EQ(resumed->verifier->node().link.address, address);
  }
}

TEST_F(NodePoolTest, WithoutANodeBehindTheNameThereIsNoVerifier) {
  Start();
  resolver_.WaitForCalls(kVerifiers, 2);
  EXPECT_THAT(pool_->Assign(SessionId::Random()).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("no verifier is ready")));
  EXPECT_FALSE(pool_->HasVerifier());
  const auto late = Verifier();
  resolver_.Set(kVerifiers, {{late->address()}});
  EXPECT_TRUE(BecomeReady(1, 0));
  EXPECT_FALSE(Assign().has_drafter());
}

TEST_F(NodePoolTest,
       AnAddressThatLeavesItsNameKeepsItsSessionsAndGetsNoOthers) {
  const auto v1 = Verifier(), v2 = Verifier();
  resolver_.Set(kVerifiers, {{v1->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(1, 0));
  std::optional<SessionNodes> running = Assign();
  resolver_.Set(kVerifiers, {{v2->address()}});
  ASSERT_TRUE(Becomes([&] { return pool_->CountVerifiers(kLeaving) == 1; }));
  ASSERT_TRUE(BecomeReady(1, 0));
  EXPECT_THAT(Spread(), ElementsAre(Pair(v2->address(), 8)));
  EXPECT_EQ(running->verifier->node().link.address, v1->address());
  EXPECT_TRUE(running->verifier->node().link.is_connected());
  running.reset();
  EXPECT_TRUE(Becomes([&] { return pool_->CountVerifiers(kLeaving) == 0; }));

  resolver_.Set(kVerifiers, {{v1->address(), v2->address()}});
  ASSERT_TRUE(BecomeReady(2, 0));
  EXPECT_EQ(Spread().at(v1->address()), 4);
}

TEST_F(NodePoolTest, ADeadNodeGetsNoSessionsUntilItIsBack) {
  auto v1 = Verifier();
  const auto v2 = Verifier();
  const std::string address = v1->address();
  resolver_.Set(kVerifiers, {{address, v2->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(2, 0));
  SessionNodes on_v1 = Assign();
  while (on_v1.verifier->node().link.address != address) on_v1 = Assign();
  v1.reset();
  // The broken connection is enough, before the next question goes unanswered.
  ASSERT_TRUE(
      Becomes([&] { return !on_v1.verifier->node().link.is_connected(); }));
  EXPECT_THAT(Spread(), ElementsAre(Pair(v2->address(), 8)));
  ASSERT_TRUE(Becomes([&] { return pool_->CountVerifiers(kNotReady) == 1; }));
  EXPECT_THAT(Spread(), ElementsAre(Pair(v2->address(), 8)));
  v1 = Verifier("A", address);
  ASSERT_TRUE(BecomeReady(2, 0));
  EXPECT_GT(Spread()[address], 0);
}

TEST_F(NodePoolTest, OldAndNewWeightsShareTheSessionsByTheirReadyNodes) {
  auto old = Verifier("A");
  const auto young1 = Verifier("B"), young2 = Verifier("B");
  resolver_.Set(kVerifiers, {{old->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(1, 0));
  resolver_.Set(kVerifiers,
                {{old->address(), young1->address(), young2->address()}});
  ASSERT_TRUE(BecomeReady(3, 0));
  EXPECT_EQ(pool_->CountVerifiers(kRefused), 0);
  for (const auto& [address, count] : Spread()) EXPECT_GE(count, 2) << address;
  old.reset();
  ASSERT_TRUE(Becomes([&] { return pool_->CountVerifiers(kReady) == 2; }));
  EXPECT_EQ(Spread().size(), 2u);
}

TEST_F(NodePoolTest, WeightsThatAreNotExpectedGetNoSessions) {
  const auto v1 = Verifier("A"), v2 = Verifier("B");
  resolver_.Set(kVerifiers, {{v1->address(), v2->address()}});
  options_.expected_weights = {"A"};
  Start();
  ASSERT_TRUE(Becomes([&] { return pool_->CountVerifiers(kRefused) == 1; }));
  ASSERT_TRUE(BecomeReady(1, 0));
  EXPECT_THAT(Spread(), ElementsAre(Pair(v1->address(), 8)));
  EXPECT_THAT(pool_->Describe().refused_verifiers,
              ElementsAre(HasSubstr("--expect-weights A")));
}

TEST_F(NodePoolTest, AResumedSessionComesToAVerifierOfItsModelOrToNone) {
  const auto v1 = Verifier("A", OwnLoopback(), "avx2");
  const auto v2 = Verifier("A", OwnLoopback(), "avx512");
  resolver_.Set(kVerifiers, {{v1->address(), v2->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(2, 0));
  const auto assign = [&](const ModelIdentity& model, Sameness sameness) {
    return pool_->Assign(SessionId::Random(), WantedModel{model, sameness});
  };
  std::vector<SessionNodes> pairs;
  for (int i = 0; i < 4; ++i) {
    auto pair =
        assign({.weights_hash = "A", .numerics = "avx512"}, Sameness::kBits);
    ASSERT_THAT(pair, IsOk());
    EXPECT_EQ(pair->verifier->node().link.address, v2->address());
    pairs.push_back(*std::move(pair));
  }
  EXPECT_THAT(
      assign({.weights_hash = "A", .numerics = "other"}, Sameness::kLaw),
      IsOk());
  EXPECT_THAT(
      assign({.weights_hash = "A", .numerics = "other"}, Sameness::kBits),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not other")));
  const auto refused = assign({.weights_hash = "B"}, Sameness::kLaw);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("its weights are A, not B")));
  EXPECT_EQ(ErrorReasonOf(refused.status()), kModelNotServedReason);
}

Task<void> WaitForAnHour(WaitingRoom::Place& place, Timer& timer,
                         std::latch& called) {
  Cancellation never;
  co_await place.Wait(timer, std::chrono::hours(1), never);
  called.count_down();
}

TEST_F(NodePoolTest, ASessionThatLeavesItsVerifierCallsWhoWaitsForRoom) {
  const auto verifier = Verifier();
  resolver_.Set(kVerifiers, {{verifier->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(1, 0));
  auto choice = pool_->ChooseVerifier(SessionId::Random(), /*fits=*/{});
  const auto place = pool_->waiting_room().Enter({});
  std::latch called(1);
  StartDetached(WaitForAnHour(*place, pool_->timer(), called));
  pool_->releases().Release(std::move(choice.seat),
                            {.session = SessionId::Random(), .step = 1});
  called.wait();
}

TEST_F(NodePoolTest, DraftersAreNotCheckedBeforeTheirNameHasAnAddress) {
  const auto drafter = Drafter();
  resolver_.Set(kDrafters, absl::UnavailableError("no DNS"));
  Start();
  const auto is_unknown =
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("drafters:7001 has no address yet"));
  resolver_.WaitForCalls(kDrafters, 2);
  EXPECT_THAT(pool_->CheckDrafters(), is_unknown);
  resolver_.Set(kDrafters, std::vector<std::string>());
  resolver_.WaitForCalls(kDrafters, 2);
  EXPECT_THAT(pool_->CheckDrafters(), is_unknown);
  resolver_.Set(kDrafters, {{drafter->address()}});
  EXPECT_TRUE(Becomes([&] { return pool_->CheckDrafters().ok(); }));
}

TEST_F(NodePoolTest, WhileNamesCannotBeResolvedTheNodesStay) {
  const auto v1 = Verifier();
  resolver_.Set(kVerifiers, {{v1->address()}});
  Start();
  ASSERT_TRUE(BecomeReady(1, 0));
  resolver_.Set(kVerifiers, absl::UnavailableError("DNS is gone"));
  resolver_.WaitForCalls(kVerifiers, 3);
  EXPECT_THAT(Spread(), ElementsAre(Pair(v1->address(), 8)));
}

}  // namespace
}  // namespace outrider::testing
