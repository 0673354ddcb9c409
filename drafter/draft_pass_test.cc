// SPDX-License-Identifier: Apache-2.0
#include "drafter/draft_pass.h"

#include <utility>
#include <variant>
#include <vector>

#include "core/model/logit_rows.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::testing::ElementsAre;

// Draws these tokens, whatever the rows say, and is complete with the last one.
class ScriptedDraft final : public DraftInProgress {
 public:
  explicit ScriptedDraft(TokenSeq tokens) : tokens_(std::move(tokens)) {}

  int num_rows() const override { return 1; }
  RowQuestion question() const override { return question_; }
  absl::StatusOr<bool> Take(const LogitRows& rows) override {
    if (rows.num_rows() != 1 || !rows.drawn().empty()) {
      return absl::InternalError("not one row alone");
    }
    taken_.push_back(std::get<DrawAnswer>(*rows.View(0).answer).tail);
    draft_.tokens.push_back(tokens_[draft_.tokens.size()]);
    return draft_.tokens.size() < tokens_.size();
  }

  void Ask(RowQuestion question) { question_ = std::move(question); }
  // What says of each row taken which it was.
  const std::vector<double>& taken() const { return taken_; }

 private:
  const TokenSeq tokens_;
  RowQuestion question_ = {};
  std::vector<double> taken_ = {};
};

// The row after the draft so far, and those after these tokens, which the model
// went on with; their tails count them.
LogitRows RowsWith(const TokenSeq& drawn) {
  std::vector<LogitRows::AskedRow> rows;
  for (size_t i = 0; i <= drawn.size(); ++i) {
    rows.push_back({.answer = DrawAnswer{.tail = static_cast<double>(i)}});
  }
  return LogitRows(std::move(rows), /*vocab_size=*/10, drawn);
}

TEST(DraftPassTest, TakesAllRowsOfTokensThatTheModelFoundRight) {
  ScriptedDraft drafting({5, 6, 7, 8});
  EXPECT_EQ(*TakePass(drafting, RowsWith({5, 6})), AfterPass::kGoesOn);
  EXPECT_THAT(drafting.draft().tokens, ElementsAre(5, 6, 7));
  EXPECT_THAT(drafting.taken(), ElementsAre(0, 1, 2));
}

TEST(DraftPassTest, TakesNoRowAfterATokenThatTheModelFoundWrong) {
  ScriptedDraft drafting({5, 6, 7, 8});
  EXPECT_EQ(*TakePass(drafting, RowsWith({5, 1, 7})), AfterPass::kCutFirst);
  EXPECT_THAT(drafting.draft().tokens, ElementsAre(5, 6));
  EXPECT_THAT(drafting.taken(), ElementsAre(0, 1));
}

TEST(DraftPassTest, ARowAloneIsTaken) {
  ScriptedDraft drafting({5, 6});
  EXPECT_EQ(*TakePass(drafting, RowsWith({})), AfterPass::kGoesOn);
  EXPECT_EQ(*TakePass(drafting, RowsWith({})), AfterPass::kComplete);
  EXPECT_THAT(drafting.draft().tokens, ElementsAre(5, 6));
}

TEST(DraftPassTest, ACompleteDraftTakesNoMore) {
  ScriptedDraft drafting({5, 6});
  EXPECT_EQ(*TakePass(drafting, RowsWith({5, 6, 7})), AfterPass::kComplete);
  EXPECT_THAT(drafting.draft().tokens, ElementsAre(5, 6));
}

TEST(DraftPassTest, TheModelMayGoOnToTheDraftsEndWhereItWasToldHow) {
  ScriptedDraft drafting({5, 6, 7, 8});
  EXPECT_EQ(NextPass(drafting, /*max_draft_tokens=*/4).max_drawn, 0);
  drafting.Ask({.what = TopQuestion{.count = 3}});
  EXPECT_EQ(NextPass(drafting, /*max_draft_tokens=*/4).max_drawn, 0);
  drafting.Ask({.what = TopQuestion{.count = 3, .next = NextDraw{}}});
  EXPECT_EQ(NextPass(drafting, /*max_draft_tokens=*/4).max_drawn, 3);
  ASSERT_THAT(TakePass(drafting, RowsWith({})), IsOk());
  EXPECT_EQ(NextPass(drafting, /*max_draft_tokens=*/4).max_drawn, 2);
}

}  // namespace
}  // namespace outrider
