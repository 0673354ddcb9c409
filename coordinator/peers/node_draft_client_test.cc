// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/node_draft_client.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/drafting/draft_strategy.h"
#include "core/testing/run_task.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/in_process_stubs.h"

namespace outrider {
namespace {

using ::outrider::testing::DraftNode;
using ::outrider::testing::InProcessDraftStub;
using ::outrider::testing::IsOk;
using ::outrider::testing::MakeTextDraftNode;
using ::outrider::testing::RunTask;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;

constexpr int kVocabSize = 20;

// Proposes as many tokens as asked for, one by one like a small model.
class FakeDraft final : public DraftInProgress {
 public:
  FakeDraft(int length, uint64_t start) : length_(length) {
    draft_.start = start;
  }
  int num_rows() const override { return 0; }
  absl::StatusOr<bool> Take(const LogitRows&) override {
    if (length_ == 0) return false;
    draft_.tokens.push_back(7);
    draft_.distributions.push_back(Distribution::OneHot(7));
    return draft_.length() < length_;
  }

 private:
  const int length_;
};

class FakeStrategy final : public DraftStrategy {
 public:
  std::unique_ptr<DraftInProgress> Begin(const DraftContext& context,
                                         uint64_t start) const override {
    return std::make_unique<FakeDraft>(context.max_draft_tokens, start);
  }
};

class NodeDraftClientTest : public ::testing::Test {
 protected:
  NodeDraftClientTest() : node_(NewNode()), stub_(*node_) {
    stub_.hooks().before = [this](const DraftCall& call) {
      calls_.push_back(call);
      return absl::OkStatus();
    };
  }

  static std::unique_ptr<DraftNode> NewNode() {
    return MakeTextDraftNode(std::make_unique<FakeStrategy>(),
                             {.vocab_size = kVocabSize, .context_length = 100});
  }

  absl::StatusOr<Draft> Propose(int num_tokens) {
    absl::StatusOr<ProposedDraft> proposed =
        RunTask(client_.Propose(session_, num_tokens));
    if (!proposed.ok()) return proposed.status();
    link_ = proposed->link;
    return std::move(proposed->draft);
  }
  // Changes the replies on their way back.
  void Forge(std::function<void(DraftReply&)> forge) {
    stub_.hooks().after = [forge](const DraftCall&, DraftReply& reply) {
      forge(reply);
      return absl::OkStatus();
    };
  }
  // The drafter answers with one miss, then truly.
  void MissOnce(Miss miss) {
    Forge([miss, done = false](DraftReply& reply) mutable {
      if (!done) reply.outcome = miss;
      done = true;
    });
  }

  std::vector<DraftCall> calls_;
  RoundStats::Link link_;  // of the last draft
  std::unique_ptr<DraftNode> node_;
  InProcessDraftStub stub_;
  NodeDraftClient client_{stub_,
                          {.context_length = 100,
                           .drafting = {.support_size = 4,
                                        .support_mass = 0.75,
                                        .min_draft_probability = 0.25}}};
  Session session_{{.prompt = {1, 2, 3},
                    .sampling = {.temperature = 0.7, .top_k = 9},
                    .seed = 11,
                    .max_length = 100}};
};

TEST_F(NodeDraftClientTest, OpensWithTheWholePromptAndTheRequestsParameters) {
  const auto draft = Propose(2);
  ASSERT_THAT(draft, IsOk());
  EXPECT_EQ(draft->length(), 2);
  EXPECT_EQ(draft->start, 3u);
  ASSERT_EQ(calls_.size(), 1u);
  EXPECT_TRUE(calls_[0].header.incarnation.is_none());
  EXPECT_THAT(calls_[0].header.delta.append_tokens, ElementsAre(1, 2, 3));
  EXPECT_EQ(calls_[0].max_draft_tokens, 2);
  EXPECT_EQ(calls_[0].options.support_size, 4);
  EXPECT_EQ(calls_[0].options.support_mass, 0.75);
  EXPECT_EQ(calls_[0].rule, RuleKind::kRejection);
  EXPECT_EQ(calls_[0].options.min_draft_probability, 0.25);
  EXPECT_EQ(calls_[0].sampling, session_.sampling());
  EXPECT_EQ(calls_[0].seed, 11u);
  EXPECT_EQ(calls_[0].prompt_length, 3);
  EXPECT_EQ(session_.drafter_cache().length(), 4);
  EXPECT_FALSE(session_.drafter_cache().incarnation().is_none());
}

TEST_F(NodeDraftClientTest, EndsADraftWhereTheCallSaysElseWhereTheOptionsDo) {
  const auto draft = RunTask(client_.Propose(
      session_,
      NodeDraftClient::Length{.num_tokens = 2, .min_draft_probability = 0.05}));
  ASSERT_THAT(draft, IsOk());
  ASSERT_EQ(calls_.size(), 1u);
  EXPECT_EQ(calls_[0].max_draft_tokens, 2);
  EXPECT_EQ(calls_[0].options.min_draft_probability, 0.05);
  EXPECT_EQ(calls_[0].options.support_mass, 0.75);
}

// It is opened in the next round, as it has to take in the whole text first.
TEST_F(NodeDraftClientTest, ADrafterThatRestartedIsOpenedAgain) {
  ASSERT_THAT(Propose(2), IsOk());
  const auto restarted = NewNode();
  stub_.Restart(*restarted);
  const auto draft = Propose(2);
  ASSERT_THAT(draft, IsOk());
  EXPECT_EQ(draft->length(), 0);
  EXPECT_EQ(link_.num_misses(), 1);
  EXPECT_TRUE(NodeDraftClient::LacksMuch(session_));
  ASSERT_THAT(Propose(2), IsOk());
  ASSERT_EQ(calls_.size(), 3u);
  EXPECT_EQ(calls_[1].header.delta.keep_length, 2);
  EXPECT_TRUE(calls_[2].header.incarnation.is_none());
  EXPECT_EQ(calls_[2].header.delta.keep_length, 0);
  EXPECT_GT(calls_[2].header.step, calls_[1].header.step);
}

TEST_F(NodeDraftClientTest, AMissForLengthSendsWhatIsMissingInTheSameLife) {
  ASSERT_THAT(Propose(2), IsOk());
  MissOnce({MissReason::kLength, /*cached_length=*/1});
  ASSERT_THAT(Propose(2), IsOk());
  ASSERT_EQ(calls_.size(), 3u);
  EXPECT_EQ(calls_[2].header.incarnation, calls_[1].header.incarnation);
  EXPECT_EQ(calls_[2].header.delta.keep_length, 1);
  EXPECT_THAT(calls_[2].header.delta.append_tokens, ElementsAre(2, 3));
}

TEST_F(NodeDraftClientTest, AStaleStepIsSentAgainWithAnother) {
  ASSERT_THAT(Propose(2), IsOk());
  MissOnce({MissReason::kStale, 4});
  ASSERT_THAT(Propose(2), IsOk());
  EXPECT_EQ(calls_[2].header.delta.keep_length, 2);
  EXPECT_GT(calls_[2].header.step, calls_[1].header.step);
}

TEST_F(NodeDraftClientTest, AnotherPrefixOpensAgain) {
  ASSERT_THAT(Propose(2), IsOk());
  MissOnce({MissReason::kPrefix, 4});
  ASSERT_THAT(Propose(2), IsOk());
  ASSERT_THAT(Propose(2), IsOk());
  EXPECT_TRUE(calls_[2].header.incarnation.is_none());
}

TEST_F(NodeDraftClientTest, ADrafterThatOnlyMissesHasFailedThisSession) {
  Forge([](DraftReply& reply) { reply.outcome = Miss(); });
  EXPECT_THAT(Propose(2), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(calls_.size(), 3u);
}

TEST_F(NodeDraftClientTest, AFillSendsTheTextAndItsReplyIsTakenInLater) {
  const std::unique_ptr<SideDraft> fill = client_.Fill(session_);
  ASSERT_TRUE(fill->is_done());
  EXPECT_EQ(session_.drafter_cache().length(), 0);
  session_.Commit(Draft::None(3), {0, 4});
  RoundStats::Link link;
  ASSERT_THAT(client_.TakeIn(*fill, session_, link), IsOk());
  EXPECT_EQ(session_.drafter_cache().length(), 3);
  EXPECT_EQ(link.num_messages, 2);
  ASSERT_THAT(Propose(2), IsOk());
  EXPECT_EQ(calls_[0].max_draft_tokens, 0);
  EXPECT_EQ(calls_[1].header.delta.keep_length, 3);
  EXPECT_THAT(calls_[1].header.delta.append_tokens, ElementsAre(4));
}

// What it says that it holds beyond that, the text has not gone on with.
TEST_F(NodeDraftClientTest, AFillCountsForNoMoreThanItHasSent) {
  Forge([](DraftReply& reply) { reply.header.cached_length += 3; });
  const std::unique_ptr<SideDraft> fill = client_.Fill(session_);
  Forge([](DraftReply&) {});
  session_.Commit(Draft::None(3), {0, 4}, {5, 6, 7, 8});
  RoundStats::Link link;
  ASSERT_THAT(client_.TakeIn(*fill, session_, link), IsOk());
  EXPECT_EQ(session_.drafter_cache().length(), 3);
  ASSERT_THAT(Propose(2), IsOk());
  EXPECT_EQ(link_.num_misses(), 0);
}

TEST_F(NodeDraftClientTest, AFillThatMissesCorrectsTheMirror) {
  ASSERT_THAT(Propose(2), IsOk());
  MissOnce({MissReason::kUnknownIncarnation});
  const std::unique_ptr<SideDraft> fill = client_.Fill(session_);
  RoundStats::Link link;
  EXPECT_THAT(client_.TakeIn(*fill, session_, link),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(session_.drafter_cache().incarnation().is_none());
  EXPECT_EQ(link.num_misses(), 1);
}

// A drafter that took delivered tokens for prompt would penalise otherwise than
// the target does: presence and frequency count what was generated.
TEST_F(NodeDraftClientTest, AfterAResumeTheDeliveredTokensAreNoPrompt) {
  Session resumed({.prompt = {1, 2, 3}, .delivered = {4, 5}, .max_length = 90});
  ASSERT_THAT(RunTask(client_.Propose(resumed, 2)), IsOk());
  EXPECT_THAT(calls_[0].header.delta.append_tokens, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(calls_[0].prompt_length, 3);
}

TEST_F(NodeDraftClientTest, AReplyToAnotherRequestIsNotTakenForThisOne) {
  ASSERT_THAT(Propose(2), IsOk());
  const int known = session_.drafter_cache().length();
  const std::vector<std::function<void(DraftReply&)>> forgeries = {
      [](DraftReply& reply) { ++reply.header.step; },
      [](DraftReply& reply) { reply.header.session = SessionId::Random(); },
      [](DraftReply& reply) {
        reply.header.incarnation = Incarnation::Random();
      }};
  for (const auto& forge : forgeries) {
    Forge(forge);
    EXPECT_THAT(Propose(2), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_EQ(session_.drafter_cache().length(), known);
  }
}

TEST_F(NodeDraftClientTest, ADraftThatBreaksItsPromisesIsRefused) {
  const auto forge = [this](std::function<void(Draft&)> change) {
    Forge([change](DraftReply& reply) {
      change(std::get<Draft>(reply.outcome));
    });
    EXPECT_THAT(Propose(2), StatusIs(absl::StatusCode::kInternal));
    EXPECT_EQ(session_.drafter_cache().length(), 0);
  };
  forge([](Draft& draft) {
    draft.tokens.push_back(0);
    draft.distributions.push_back(Distribution::OneHot(0));
  });
  forge([](Draft& draft) { draft.distributions.pop_back(); });
  forge([](Draft& draft) { ++draft.start; });
  // Rows rotated by one, rows cut after sampling: a token off its own row.
  forge([](Draft& draft) {
    draft.distributions[0] = Distribution::OneHot(draft.tokens[0] ^ 1);
  });
  forge([](Draft& draft) { draft.tokens[1] = -1; });
}

TEST_F(NodeDraftClientTest, FewerDraftsThanAskedForAreFine) {
  Forge([](DraftReply& reply) {
    Draft& draft = std::get<Draft>(reply.outcome);
    draft.tokens.clear();
    draft.distributions.clear();
  });
  const auto draft = Propose(2);
  ASSERT_THAT(draft, IsOk());
  EXPECT_EQ(draft->length(), 0);
}

TEST_F(NodeDraftClientTest, ALostReplyLeavesTheMirrorAndTheNextCallHeals) {
  ASSERT_THAT(Propose(2), IsOk());
  stub_.hooks().after = [](const DraftCall&, DraftReply&) {
    return absl::DeadlineExceededError("late");
  };
  EXPECT_THAT(Propose(2), StatusIs(absl::StatusCode::kDeadlineExceeded));
  stub_.hooks().after = {};
  ASSERT_THAT(Propose(2), IsOk());
  EXPECT_EQ(link_.num_misses(), 0);
}

TEST_F(NodeDraftClientTest, ALostOpeningReplyOpensOnceMore) {
  stub_.hooks().after = [](const DraftCall&, DraftReply&) {
    return absl::UnavailableError("lost");
  };
  EXPECT_THAT(Propose(0), StatusIs(absl::StatusCode::kUnavailable));
  stub_.hooks().after = {};
  ASSERT_THAT(Propose(0), IsOk());
  EXPECT_TRUE(calls_[1].header.incarnation.is_none());
  EXPECT_EQ(link_.num_misses(), 0);
  EXPECT_EQ(session_.drafter_cache().length(), 3);
}

}  // namespace
}  // namespace outrider
