// SPDX-License-Identifier: Apache-2.0
// Where an unsure drafter ends may follow from what became of past rounds, and
// from how sure the drafter was in them: the law stays. It does not where a
// draft is kept or not by the token that was drawn.
#include <bit>
#include <cstdint>
#include <iostream>
#include <memory>
#include <set>
#include <vector>

#include "coordinator/peers/node_draft_client.h"
#include "coordinator/round/shorten_draft.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::adaptive_stop {
namespace {

constexpr int kLength = 4;
constexpr int kMostDrafts = 3;
constexpr double kFigure = 1.9e-1;  // total variation of the mistake

// Each round goes on for as long as the last one's drafts were worth it: where
// all stood it may be less sure, where none did it must be surer.
class AdaptiveStop : public DraftClient {
 public:
  explicit AdaptiveStop(DraftClient& node)
      : node_(static_cast<NodeDraftClient&>(node)) {}

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    stops_.insert(stop_);
    return node_.Propose(
        session, NodeDraftClient::Length{.num_tokens = num_tokens,
                                         .min_draft_probability = stop_});
  }
  void DraftAhead(Session&, const Draft&) override {}
  void Learn(const RoundStats& round) override {
    if (round.num_drafted == 0) return;
    float probability = 1;
    for (const float confidence : round.confidences) probability *= confidence;
    const bool all_stand = round.num_accepted == round.num_drafted;
    stop_ = all_stand ? probability / 2 : round.num_accepted > 0 ? 0.3 : 0.6;
  }

  // All that its choices follow from.
  std::vector<int64_t> memory() const {
    return {std::bit_cast<int64_t>(stop_)};
  }
  // What all of them chose, in all that they went through.
  static std::set<double>& stops() { return stops_; }

 private:
  static inline std::set<double> stops_;

  NodeDraftClient& node_;
  double stop_ = 0.3;
};

// The mistake: a draft that is improbable itself is not worth a row.
class DropsTheImprobable final : public AdaptiveStop {
 public:
  using AdaptiveStop::AdaptiveStop;
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    absl::StatusOr<ProposedDraft> proposed =
        co_await AdaptiveStop::Propose(session, num_tokens);
    if (!proposed.ok()) co_return proposed;
    Draft& draft = proposed->draft;
    for (int i = 0; i < draft.length(); ++i) {
      if (draft.distributions[i](draft.tokens[i]) < 0.3) Shorten(i, draft);
    }
    co_return proposed;
  }
};

template <class Drafts>
Sabotage With() {
  return {.drafts =
              [](DraftClient& node) { return std::make_unique<Drafts>(node); },
          .memory =
              [](DraftClient& drafts) {
                return static_cast<Drafts&>(drafts).memory();
              }};
}

class AdaptiveStopTest : public ::testing::TestWithParam<RuleKind> {
 protected:
  static Enumeration Run(const Sabotage& sabotage) {
    return Enumerate({.sampling = kFourWordsSampling,
                      .rule = GetParam(),
                      .draft_lengths = {kMostDrafts},
                      .sabotage = sabotage},
                     FourWords(), kLength);
  }
  static Law TargetsLaw() {
    return PlainLaw(FourWords(), kFourWordsSampling, {kToyPrompt}, kLength, {});
  }
};

TEST_P(AdaptiveStopTest, HasTheTargetsLawWhateverPastRoundsChoose) {
  AdaptiveStop::stops().clear();
  const Enumeration result = Run(With<AdaptiveStop>());
  ExpectLaw(result, TargetsLaw());
  EXPECT_GT(result.expected_drafted, 0.5);
  EXPECT_GE(AdaptiveStop::stops().size(), 4u);
}

TEST_P(AdaptiveStopTest, ToDropADraftForBeingImprobableBreaksIt) {
  const Enumeration result = Run(With<DropsTheImprobable>());
  const double distance = Compare(result.law, TargetsLaw()).total_variation;
  std::cout << "joint TV " << distance << "\n";
  EXPECT_GT(distance, kFigure);
}

INSTANTIATE_TEST_SUITE_P(Rules, AdaptiveStopTest,
                         ::testing::Values(RuleKind::kRejection,
                                           RuleKind::kBlock));

}  // namespace
}  // namespace outrider::testing::adaptive_stop
