// SPDX-License-Identifier: Apache-2.0
// How long a draft takes depends on its tokens: with a minimum of confidence a
// draft ends where the drafter becomes unsure, and one of three passes takes
// longer than one of two. Both sides of what follows from that: whether a round
// drafts may depend on how long drafts took before, and a draft that was drawn
// must never be dropped for being late.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/peers/draft_pace.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing {
namespace {

using std::chrono::seconds;

constexpr int kLength = 5;
constexpr double kSecondsOfAPass = 0.2;
constexpr int kMostPassesInTime = 2;
constexpr double kFigure = 1.15e-1;  // total variation where it is dropped

ClusterConfig Config(Sabotage sabotage) {
  return {.sampling = kFourWordsSampling,
          .min_draft_probability = 0.3,
          .draft_lengths = {3},
          .sabotage = std::move(sabotage)};
}

Difference Compared(const Enumeration& result) {
  return Compare(result.law, PlainLaw(FourWords(), kFourWordsSampling,
                                      {kToyPrompt}, kLength, {}));
}

void ExpectExact(const Enumeration& result) {
  const Difference joint = Compared(result);
  EXPECT_EQ(result.problem, "");
  EXPECT_LE(joint.max_difference, kTolerance);
  EXPECT_LE(joint.mass_error, kTolerance);
  EXPECT_EQ(joint.impossible_mass, 0);
}

// Decides as OptionalDraftClient does: by the pace of past rounds, before it
// asks. Time is virtual; a round takes a second, and a spared verification is
// worth one pass.
class PacedDrafts final : public DraftClient {
 public:
  explicit PacedDrafts(DraftClient& node) : node_(node) {}

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    num_passes_ = 0;
    now_ += seconds(1);
    if (!pace_.IsWorthAsking(now_)) {
      co_return ProposedDraft{.draft = Draft::None(session.length())};
    }
    absl::StatusOr<ProposedDraft> draft =
        co_await node_.Propose(session, num_tokens);
    if (draft.ok()) num_passes_ = draft->draft.length();
    co_return draft;
  }
  void Learn(const RoundStats& round) override {
    if (num_passes_ == 0) return;
    const double saved = kSecondsOfAPass * round.num_accepted;
    pace_.Took(kSecondsOfAPass * num_passes_, saved, now_);
    history_.push_back(num_passes_);
    history_.push_back(round.num_accepted);
  }

  // All that the pace follows from.
  const std::vector<int64_t>& history() const { return history_; }

 private:
  DraftClient& node_;
  DraftPace pace_;
  DraftPace::Clock::time_point now_ = {};
  int num_passes_ = 0;
  std::vector<int64_t> history_;
};

Sabotage ByPace() {
  return {
      .drafts =
          [](DraftClient& node) { return std::make_unique<PacedDrafts>(node); },
      .memory =
          [](DraftClient& drafts) {
            return static_cast<PacedDrafts&>(drafts).history();
          }};
}

// The mistake: it waits until the time is up, and goes on without the draft.
void DropIfLate(Draft& draft) {
  if (draft.length() > kMostPassesInTime) draft = {.start = draft.start};
}

class LateDraftTest : public ::testing::TestWithParam<RuleKind> {
 protected:
  static Enumeration Run(ClusterConfig config) {
    config.rule = GetParam();
    return Enumerate(config, FourWords(), kLength);
  }
};

TEST_P(LateDraftTest, ToDecideBeforeAskingByHowLongDraftsTookIsExact) {
  const Enumeration paced = Run(Config(ByPace()));
  ExpectExact(paced);
  // It does decide: some rounds draft, and some that would have do not.
  const Enumeration all = Run(Config({}));
  ExpectExact(all);
  EXPECT_GT(paced.expected_drafted, 0.5);
  EXPECT_LT(paced.expected_drafted, 0.9 * all.expected_drafted);
}

// The round after one that was late does not draft.
TEST_P(LateDraftTest, ToSkipTheRoundAfterALateOneIsExact) {
  ExpectExact(Run(Config({.draft_length = [](const RoundView& view, int k) {
    const bool was_late =
        view.draft != nullptr && view.draft->length() > kMostPassesInTime;
    return was_late ? 0 : k;
  }})));
}

TEST_P(LateDraftTest, ToDropADraftThatIsLateIsNot) {
  const Difference joint = Compared(Run(Config({.alter_draft = DropIfLate})));
  std::cout << "joint TV " << joint.total_variation << "\n";
  EXPECT_NEAR(joint.total_variation, kFigure, 0.02 * kFigure);
}

// A draft that was not drawn has no tokens of its own to be late for.
TEST_P(LateDraftTest, OneHotDraftsMayBeDroppedAtAnyTime) {
  ClusterConfig config = Config({.alter_draft = [](Draft& draft) {
    if (draft.length() > 0 && draft.tokens[0] % 2 == 0) {
      draft = {.start = draft.start};
    }
  }});
  config.ngrams = NgramStrategy::Options{};
  ExpectExact(Run(config));
}

std::string NameOf(const ::testing::TestParamInfo<RuleKind>& info) {
  return info.param == RuleKind::kBlock ? "Block" : "Rejection";
}
INSTANTIATE_TEST_SUITE_P(Rules, LateDraftTest,
                         ::testing::Values(RuleKind::kRejection,
                                           RuleKind::kBlock),
                         NameOf);

}  // namespace
}  // namespace outrider::testing
