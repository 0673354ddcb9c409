// SPDX-License-Identifier: Apache-2.0
// Passes that are launched before the ones in front of them are finished: each
// has the rows, bit for bit, that it has by itself, whatever the device has
// done when it is finished.
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/cuda_model/small_model.h"
#include "core/cuda_model/small_session.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr int kInFlightBlocks = 100;
constexpr int kInFlightVocabulary = 50;

using Batch = std::vector<Extension>;

const SmallSession& LongOne() {
  static const SmallSession session = {SmallText(120, 1),
                                       SmallTable(0, 2, 120)};
  return session;
}
const SmallSession& ShortOne() {
  static const SmallSession session = {SmallText(60, 2), SmallTable(71, 1, 60)};
  return session;
}

RowQuestion Asks(RowQuestion question) {
  question.vocab_size = kInFlightVocabulary;
  question.temperature = 1;
  return question;
}

// Questions of each kind: one that is answered, one that is answered and does
// not decide, and none at all, in turns.
const std::vector<RowQuestion>& Questions() {
  static const std::vector<RowQuestion> questions = [] {
    std::vector<RowQuestion> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(Asks({.what = TopQuestion{.count = 7}}));
      all.push_back(Asks(
          {.what = TopQuestion{.count = 5, .suffices = [](const TopAnswer&) {
                                 return false;
                               }}}));
      all.push_back(Asks({}));
      all.push_back(Asks({.what = DrawQuestion{.uniform = 0.2 * i}}));
    }
    return all;
  }();
  return questions;
}

Extension Asking(Extension extension, int first_question) {
  extension.questions = absl::MakeConstSpan(Questions())
                            .subspan(first_question, extension.num_rows);
  return extension;
}

constexpr int kFirstDrawn = 30, kLastDrawn = 32;

// How the model goes on after so many tokens of a text.
const RowQuestion& Draws(int length) {
  static const std::vector<RowQuestion> questions = [] {
    std::vector<RowQuestion> all;
    for (uint64_t position = kFirstDrawn; position <= kLastDrawn; ++position) {
      const NextDraw next = {
          .support_size = 20, .seed = 77, .position = position};
      all.push_back(Asks({.what = TopQuestion{.count = 20, .next = next}}));
    }
    return all;
  }();
  return questions[length - kFirstDrawn];
}

// Chunks of two prompts, then passes of both sessions and of one, whose rows
// are whole, answered and undecided, and drafts.
std::vector<Batch> Script() {
  std::vector<Batch> passes = {{LongOne().Run(0, 40, 0)},
                               {LongOne().Run(40, 80, 0)},
                               {ShortOne().Run(0, 20, 2)},
                               {LongOne().Run(80, 90, 3)}};
  for (int i = 0; i < 5; ++i) {
    passes.push_back({Asking(LongOne().Run(90 + 4 * i, 95 + 4 * i, 5), i)});
    passes.push_back({Asking(ShortOne().Run(20 + 2 * i, 24 + 2 * i, 4), 2 * i),
                      ShortOne().Run(0, 3, 1)});
  }
  for (int length = kFirstDrawn; length <= kLastDrawn; ++length) {
    for (const SmallSession* session : {&LongOne(), &ShortOne()}) {
      Extension extension = session->Run(length - 2, length, 1);
      extension.questions = {&Draws(length), 1};
      extension.max_drawn = 3;
      passes.push_back({extension});
    }
  }
  return passes;
}

bool IsSameAnswer(const RowAnswer& answer, const RowAnswer& right) {
  if (const auto* draw = std::get_if<DrawAnswer>(&right)) {
    const auto& told = std::get<DrawAnswer>(answer);
    return told.drawn == draw->drawn && told.tail == draw->tail;
  }
  const auto& top = std::get<TopAnswer>(right);
  const auto& told = std::get<TopAnswer>(answer);
  return told.ids == top.ids && told.logits == top.logits &&
         told.rest == top.rest;
}

bool IsSameRow(const RowView& row, const RowView& right) {
  if ((row.answer == nullptr) != (right.answer == nullptr)) return false;
  return right.answer == nullptr ? row.logits == right.logits
                                 : IsSameAnswer(*row.answer, *right.answer);
}

void ExpectSame(const std::vector<PassResults>& passes,
                const std::vector<PassResults>& right) {
  ASSERT_EQ(passes.size(), right.size());
  for (size_t i = 0; i < passes.size(); ++i) {
    ASSERT_EQ(passes[i].size(), right[i].size());
    for (size_t j = 0; j < passes[i].size(); ++j) {
      SCOPED_TRACE("pass " + std::to_string(i) + ", " + std::to_string(j));
      ASSERT_TRUE(passes[i][j].ok()) << passes[i][j].status();
      const LogitRows& rows = *passes[i][j];
      ASSERT_EQ(rows.num_rows(), right[i][j]->num_rows());
      EXPECT_EQ(rows.drawn(), right[i][j]->drawn());
      for (int row = 0; row < rows.num_rows(); ++row) {
        EXPECT_TRUE(IsSameRow(rows.View(row), right[i][j]->View(row))) << row;
      }
    }
  }
}

class PassesInFlightTest : public ::testing::Test {
 protected:
  void Make(const CudaLimits& limits = {.capture_time = {}}) {
    auto model = MakeSmallModel(limits, gpu_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    ASSERT_TRUE(model_->AllocateKvBlocks(kInFlightBlocks).ok());
  }

  // They run on a model of their own.
  static std::vector<PassResults> OneByOne(const std::vector<Batch>& passes) {
    auto model = MakeSmallModel();
    EXPECT_TRUE(model.ok() && (*model)->AllocateKvBlocks(kInFlightBlocks).ok());
    std::vector<PassResults> results;
    results.reserve(passes.size());
    for (const Batch& pass : passes) results.push_back((*model)->Extend(pass));
    return results;
  }

  static const std::vector<PassResults>& ScriptOneByOne() {
    static const std::vector<PassResults> results = OneByOne(Script());
    return results;
  }

  // Each is launched before the one in front of it is finished; the device has
  // run both by then, or nothing that it need not have.
  std::vector<PassResults> InFlight(const std::vector<Batch>& passes,
                                    bool runs_ahead) {
    std::vector<PassResults> results;
    std::unique_ptr<PendingPass> first;
    for (const Batch& pass : passes) {
      std::unique_ptr<PendingPass> second = model_->Launch(pass);
      if (runs_ahead) {
        EXPECT_EQ(gpu_->Finish(), "");
      }
      if (first != nullptr) results.push_back(first->Finish());
      first = std::move(second);
    }
    results.push_back(first->Finish());
    return results;
  }

  const std::shared_ptr<Gpu> gpu_ = GpuUnderTest();
  std::unique_ptr<CausalLm> model_;
};

TEST_F(PassesInFlightTest, HaveTheRowsOfOneAfterTheOther) {
  for (const bool runs_ahead : {false, true}) {
    SCOPED_TRACE(runs_ahead);
    Make();
    ExpectSame(InFlight(Script(), runs_ahead), ScriptOneByOne());
    const DeviceCounters& counters = *model_->device_counters();
    EXPECT_GT(counters.num_undecided_rows, 0);
    EXPECT_GT(counters.num_drawn_tokens, 0);
    EXPECT_GT(counters.num_graph_replays, 0);
  }
}

// Steps that are awaited within a launch leave the pass in front as it is.
TEST_F(PassesInFlightTest, HaveThemWhereAPassTakesSeveralStepsToo) {
  for (const bool runs_ahead : {false, true}) {
    SCOPED_TRACE(runs_ahead);
    Make({.rows = 3, .loop_sessions = 3, .capture_time = {}});
    ExpectSame(InFlight(Script(), runs_ahead), ScriptOneByOne());
  }
}

// A session that was answered by a third one gave its blocks back.
TEST_F(PassesInFlightTest, ReadTheirOwnTextThoughTheNextOneWritesToItsBlocks) {
  SmallSession heir = {SmallText(60, 9), ShortOne().table};
  const std::vector<Batch> passes = {{ShortOne().Run(0, 50, 0)},
                                     {Asking(ShortOne().Run(50, 56, 6), 0)},
                                     {Asking(heir.Run(0, 40, 6), 3)},
                                     {Asking(heir.Run(40, 45, 5), 2)}};
  const std::vector<PassResults> right = OneByOne(passes);
  for (const bool runs_ahead : {false, true}) {
    Make();
    ExpectSame(InFlight(passes, runs_ahead), right);
  }
}

TEST_F(PassesInFlightTest, HaveThemWhateverTheThreadsDo) {
  const std::vector<Batch> passes = Script();
  Make();
  std::vector<PassResults> results;
  std::unique_ptr<PendingPass> pending = model_->Launch(passes[0]);
  for (size_t i = 1; i <= passes.size(); ++i) {
    auto next = std::async(std::launch::async, [&] {
      return i < passes.size() ? model_->Launch(passes[i]) : nullptr;
    });
    results.push_back(pending->Finish());
    pending = next.get();
  }
  ExpectSame(results, ScriptOneByOne());
}

TEST_F(PassesInFlightTest, OneThatHasNothingToRunIsFinishedInItsTurn) {
  Make();
  const Batch wrong = {{.blocks = ShortOne().table}};
  const Batch right = {ShortOne().Run(0, 9, 1)};
  auto first = model_->Launch(wrong), second = model_->Launch(right);
  EXPECT_EQ(first->Finish()[0].status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(second->Finish()[0].ok());
}

}  // namespace
}  // namespace outrider
