// SPDX-License-Identifier: Apache-2.0
// How long a draft takes depends on its tokens: with a minimum of confidence a
// draft ends where the drafter becomes unsure, and one of three passes takes
// longer than one of two. Both sides of what follows from that: whether a round
// drafts may depend on how long drafts took before, and a draft that was drawn
// must never be dropped for being late.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/control/draft_length_control.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/optional_draft_client.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::late_draft {
namespace {

constexpr int kLength = 5;
constexpr int kMostDrafts = 3;
constexpr double kSecondsOfAPass = 0.15;
constexpr double kSecondsOfVerification = 0.3;
constexpr int kMostPassesInTime = 2;
constexpr double kFigure = 1.15e-1;  // total variation where it is dropped

ClusterConfig Config(Sabotage sabotage) {
  return {.sampling = kFourWordsSampling,
          .drafting = {.min_draft_probability = 0.3},
          .draft_lengths = {kMostDrafts},
          .sabotage = std::move(sabotage)};
}

Law TargetsLaw() {
  return PlainLaw(FourWords(), kFourWordsSampling, {kToyPrompt}, kLength, {});
}

void ExpectExact(const Enumeration& result) { ExpectLaw(result, TargetsLaw()); }

// Decides as OptionalDraftClient does: by DraftLengthControl, before it asks,
// how many drafts and where an unsure drafter ends them.
// Time is virtual, and such that drafts just pay: each round tips the scales.
class ControlledDrafts final : public DraftClient {
 public:
  explicit ControlledDrafts(DraftClient& node) : node_(node) {
    for (int i = 0; i < kRoundsBefore; ++i) {
      choice_ = control_.Choose(kMostDrafts, DraftLengthMode::kAuto);
      Learn({.num_drafted = choice_.num_drafts,
             .num_accepted = i % 3 != 1 ? choice_.num_drafts : 0});
    }
    history_.clear();
  }

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    choice_ = control_.Choose(num_tokens, DraftLengthMode::kAuto);
    chosen_.insert(choice_.num_drafts);
    if (choice_.num_drafts == 0) {
      co_return ProposedDraft{.draft = Draft::None(session.length())};
    }
    co_return co_await static_cast<NodeDraftClient&>(node_).Propose(
        session, OptionalDraftClient::LengthOf(choice_));
  }
  void DraftAhead(Session&, const Draft&) override {}
  void Learn(const RoundStats& round) override {
    RoundStats timed = round;
    timed.drafter.call_seconds = kSecondsOfAPass * round.num_drafted;
    timed.drafter.compute_seconds = timed.drafter.call_seconds;
    timed.verifier = {.call_seconds = kSecondsOfVerification,
                      .compute_seconds = kSecondsOfVerification};
    timed.round_seconds =
        timed.drafter.call_seconds + timed.verifier.call_seconds;
    control_.Learn(choice_, timed);
    for (const int number : {choice_.num_drafts, choice_.stop,
                             round.num_drafted, round.num_accepted}) {
      history_.push_back(number);
    }
    for (const float confidence : round.confidences) {
      history_.push_back(std::bit_cast<int32_t>(confidence));
    }
  }

  // What all of them chose, in all that they went through.
  static std::set<int>& chosen() { return chosen_; }

  // All that its choices follow from.
  const std::vector<int64_t>& history() const { return history_; }

 private:
  static constexpr int kRoundsBefore = 24;
  static inline std::set<int> chosen_;

  DraftClient& node_;
  DraftLengthControl control_;
  DraftLengthControl::Choice choice_;
  std::vector<int64_t> history_;
};

Sabotage ByControl() {
  return {.drafts =
              [](DraftClient& node) {
                return std::make_unique<ControlledDrafts>(node);
              },
          .memory =
              [](DraftClient& drafts) {
                return static_cast<ControlledDrafts&>(drafts).history();
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

TEST_P(LateDraftTest, KByControlFromPastRoundsIsExact) {
  ControlledDrafts::chosen().clear();
  const Enumeration controlled = Run(Config(ByControl()));
  ExpectExact(controlled);
  const Enumeration all = Run(Config({}));
  ExpectExact(all);
  std::cout << "drafted " << controlled.expected_drafted << " of "
            << all.expected_drafted << "\n";
  EXPECT_GT(controlled.expected_drafted, 0.5);
  EXPECT_LT(controlled.expected_drafted, 0.9 * all.expected_drafted);
  // It does choose, by what the rounds before gave.
  EXPECT_GE(ControlledDrafts::chosen().size(), 2u);
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
  const Difference joint =
      Compare(Run(Config({.alter_draft = DropIfLate})).law, TargetsLaw());
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
}  // namespace outrider::testing::late_draft
