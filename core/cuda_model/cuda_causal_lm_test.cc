// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/cuda_causal_lm.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda_model/small_model.h"
#include "core/cuda_model/small_session.h"
#include "core/testing/answer_on_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

constexpr int kNumBlocks = 100;

class Model {
 public:
  explicit Model(const CudaLimits& limits = {}) {
    auto model = MakeSmallModel(limits);
    EXPECT_TRUE(model.ok()) << model.status();
    if (model.ok()) model_ = *std::move(model);
    EXPECT_TRUE(model_->AllocateKvBlocks(kNumBlocks).ok());
  }

  // All their logits, one after the other.
  std::vector<float> Extend(const std::vector<Extension>& batch) {
    std::vector<float> all;
    for (const auto& rows : model_->Extend(batch)) {
      EXPECT_TRUE(rows.ok()) << rows.status();
      if (!rows.ok()) continue;
      for (const auto row : rows->Rows()) {
        all.insert(all.end(), row.begin(), row.end());
      }
    }
    return all;
  }

  CausalLm& operator*() { return *model_; }
  CausalLm* operator->() { return model_.get(); }

 private:
  std::unique_ptr<CausalLm> model_;
};

const SmallSession& Long() {
  static const SmallSession session = {SmallText(300, 1),
                                       SmallTable(0, 2, 300)};
  return session;
}
const SmallSession& Short() {
  static const SmallSession session = {SmallText(40, 2), SmallTable(71, 1, 40)};
  return session;
}

// A prompt, and passes as a verifier runs them, some with both sessions.
std::vector<float> RunScript(Model& model) {
  std::vector<float> all;
  const auto run = [&](const std::vector<Extension>& batch) {
    const std::vector<float> some = model.Extend(batch);
    all.insert(all.end(), some.begin(), some.end());
  };
  run({Short().Run(0, 20, 0), Long().Run(0, 270, 3)});
  for (int i = 0; i < 5; ++i) {
    run({Long().Run(270 + 4 * i, 275 + 4 * i, 5),
         Short().Run(20 + 2 * i, 24 + 2 * i, 2)});
    run({Short().Run(24 + 2 * i, 25 + 2 * i, 1)});
  }
  return all;
}

const std::vector<float>& Reference() {
  static const std::vector<float> logits = [] {
    Model model({.graph_rows = 0});
    return RunScript(model);
  }();
  return logits;
}

TEST(CudaCausalLmTest, SaysHowLargeItsBlocksAre) {
  Model model;
  EXPECT_EQ(model->info().kv_block_bytes, 2 * 2 * 16 * 32 * 2);
}

TEST(CudaCausalLmTest, ALogitIsANumberAndDependsOnItsContext) {
  ASSERT_FALSE(Reference().empty());
  for (const float logit : Reference()) ASSERT_TRUE(std::isfinite(logit));
  EXPECT_NE(Reference()[0], Reference()[50]);
}

TEST(CudaCausalLmTest, AGraphGivesTheBitsOfItsLaunches) {
  Model model;
  EXPECT_EQ(RunScript(model), Reference());
}

TEST(CudaCausalLmTest, StepsOfAnySizeGiveTheSameBits) {
  for (const CudaLimits& limits :
       {CudaLimits{.rows = 8}, CudaLimits{.rows = 37, .graph_rows = 4},
        CudaLimits{.rows = 64, .attention_floats = 1}}) {
    Model model(limits);
    EXPECT_EQ(RunScript(model), Reference()) << limits.rows << " rows";
  }
}

TEST(CudaCausalLmTest, ASessionAloneHasTheBitsThatItHasInABatch) {
  Model model;
  model.Extend({Short().Run(0, 20, 0)});
  const auto alone = model.Extend({Short().Run(20, 29, 9)});
  model.Extend({Long().Run(0, 270, 0)});
  const auto both =
      model.Extend({Long().Run(270, 282, 0), Short().Run(20, 29, 9)});
  EXPECT_EQ(both, alone);
}

// More rows than a product takes at a time, and logits of all.
TEST(CudaCausalLmTest, ARoundOfManySessionsIsOneLaunchAndHasTheirBits) {
  Model model;
  constexpr int kSessions = 14, kRows = 5;
  std::vector<SmallSession> sessions;
  std::vector<Extension> batch;
  std::vector<float> alone;
  sessions.reserve(kSessions);
  for (int i = 0; i < kSessions; ++i) {
    sessions.push_back({SmallText(20 + i, i), SmallTable(3 * i, 1, 20 + i)});
  }
  for (const SmallSession& session : sessions) {
    const auto length = static_cast<int>(session.tokens.size());
    model.Extend({session.Run(0, length - kRows, 0)});
    batch.push_back(session.Run(length - kRows, length, kRows));
    const std::vector<float> rows = model.Extend({batch.back()});
    alone.insert(alone.end(), rows.begin(), rows.end());
  }
  const int64_t before = model->device_counters()->num_graph_replays;
  // The first of a shape is launched kernel by kernel.
  for (int time = 0; time < 2; ++time) EXPECT_EQ(model.Extend(batch), alone);
  EXPECT_EQ(model->device_counters()->num_graph_replays - before, 1);
}

TEST(CudaCausalLmTest, SessionsOfLongTextsAreInOneStepToo) {
  Model model;
  model.Extend({Long().Run(0, 299, 0)});
  const std::vector<Extension> batch(40, Long().Run(299, 300, 1));
  const auto alone = model.Extend({batch.front()});
  const int64_t before = model->device_counters()->num_graph_replays;
  for (int time = 0; time < 2; ++time) {
    const auto all = model.Extend(batch);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.end() - 50));
  }
  EXPECT_EQ(model->device_counters()->num_graph_replays - before, 1);
}

TEST(CudaCausalLmTest, RowsAfterACopyOfABlockAreThoseAfterTheBlockItself) {
  Model model;
  model.Extend({Short().Run(0, 28, 0)});
  SmallSession branch = Short();
  branch.table = {branch.table[0], 5, 6};
  Extension extension = branch.Run(28, 33, 5);
  extension.copied_block = Short().table[1];
  const std::vector<float> rows = model.Extend({extension});
  EXPECT_EQ(rows, model.Extend({Short().Run(28, 33, 5)}));
  // It goes on from its own.
  EXPECT_EQ(model.Extend({branch.Run(33, 36, 3)}),
            model.Extend({Short().Run(33, 36, 3)}));
}

// Rows that fill up a graph are written to a block that nobody has.
TEST(CudaCausalLmTest, PaddingLeavesEveryBlockAsItIs) {
  Model model;
  const SmallSession first = {SmallText(16, 3), {0}},
                     last = {SmallText(16, 4), {99}};
  const auto expected = model.Extend({first.Run(0, 16, 1), last.Run(0, 16, 1)});
  const SmallSession between = {SmallText(30, 5), {50, 51}};
  for (int i = 0; i < 3; ++i) model.Extend({between.Run(0, 17 + i, 1)});
  EXPECT_EQ(model.Extend({first.Run(15, 16, 1), last.Run(15, 16, 1)}),
            expected);
}

TEST(CudaCausalLmTest, PreparedGraphsServeTheFirstStepOfTheirShape) {
  Model model({.graph_rows = 2, .capture_time = kTimeForGraphs}), unprepared;
  ASSERT_TRUE(model->Prepare().ok());
  const DeviceCounters& counters = *model->device_counters();
  EXPECT_EQ(counters.num_answered_rows, 0);
  EXPECT_EQ(counters.num_graph_replays, 0);
  EXPECT_GT(counters.num_memory_bytes, 0);
  EXPECT_GT(counters.num_graphs, 0);
  const std::vector<RowQuestion> questions(
      2, {.vocab_size = 50, .temperature = 1, .what = DrawQuestion()});
  Extension extension = Short().Run(0, 2, 2);
  extension.questions = questions;
  const auto rows = model->Extend({&extension, 1});
  const auto same = unprepared->Extend({&extension, 1});
  ASSERT_TRUE(rows[0].ok() && same[0].ok());
  EXPECT_EQ(counters.num_graph_replays, 1);
  EXPECT_EQ(counters.num_late_graphs, 0);
  EXPECT_EQ(unprepared->device_counters()->num_graph_replays, 0);
  EXPECT_EQ(counters.num_answered_rows, 2);
  EXPECT_EQ(std::get<DrawAnswer>(*rows[0]->View(1).answer).tail,
            std::get<DrawAnswer>(*same[0]->View(1).answer).tail);
}

// Rounds of one session and of two, with every kind of row, as long as they
// are and longer.
TEST(CudaCausalLmTest, NoGraphIsCapturedOnceItServes) {
  Model model({.graph_rows = 16, .capture_time = kTimeForGraphs});
  ASSERT_TRUE(model->Prepare().ok());
  const DeviceCounters& counters = *model->device_counters();
  const int64_t num_graphs = counters.num_graphs;
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(RunScript(model), Reference());
    EXPECT_EQ(counters.num_graph_replays, 10 * (time + 1));
  }
  EXPECT_EQ(counters.num_late_graphs, 0);
  EXPECT_EQ(counters.num_graphs, num_graphs);
}

TEST(CudaCausalLmTest, GraphsThatFindNoTimeAreCapturedWhileItServes) {
  Model model({.capture_time = {}});
  ASSERT_TRUE(model->Prepare().ok());
  const DeviceCounters& counters = *model->device_counters();
  EXPECT_EQ(counters.num_graphs, 0);
  EXPECT_EQ(RunScript(model), Reference());
  EXPECT_GT(counters.num_late_graphs, 0);
  EXPECT_EQ(counters.num_late_graphs, counters.num_graphs);
}

// Rows of a question each, by a pass of several steps: what the whole row would
// answer.
TEST(CudaCausalLmTest, AskedRowsAreAnsweredWithTheirOwn) {
  Model model({.rows = 8});
  model.Extend({Short().Run(0, 20, 0), Long().Run(0, 270, 0)});
  const std::vector<Extension> batch = {Short().Run(20, 26, 6),
                                        Long().Run(270, 276, 5)};
  const std::vector<float> whole = model.Extend(batch);
  std::vector<RowQuestion> questions;
  for (int i = 0; i < 11; ++i) {
    questions.push_back({.vocab_size = 50, .temperature = 1});
    if (i % 3 == 0) questions.back().what = TopQuestion{.count = i + 1};
    if (i % 3 == 1) questions.back().what = DrawQuestion{.uniform = 0.09 * i};
  }
  auto asking = batch;
  asking[0].questions = absl::MakeConstSpan(questions).first(6);
  asking[1].questions = absl::MakeConstSpan(questions).subspan(6);
  const auto results = model->Extend(asking);
  ASSERT_TRUE(results[0].ok() && results[1].ok());
  for (int i = 0; i < 11; ++i) {
    const RowView row = i < 6 ? results[0]->View(i) : results[1]->View(i - 6);
    const auto logits = absl::MakeConstSpan(whole).subspan(50 * i, 50);
    EXPECT_EQ(row.answer == nullptr, i % 3 == 2);
    if (i % 3 == 2) {
      EXPECT_EQ(row.logits, logits);
      continue;
    }
    const auto right = testing::AnswerOnHost(questions[i], logits);
    if (i % 3 == 0) {
      EXPECT_EQ(std::get<TopAnswer>(*row.answer).logits,
                std::get<TopAnswer>(*right).logits);
    } else {
      EXPECT_EQ(std::get<DrawAnswer>(*row.answer).drawn,
                std::get<DrawAnswer>(*right).drawn);
    }
  }
  EXPECT_EQ(model->device_counters()->num_answered_rows, 8);
}

TEST(CudaCausalLmTest, OneThatCannotRunLeavesTheOthersAlone) {
  Model model;
  const auto alone = model.Extend({Short().Run(0, 9, 9)});
  const std::vector<TokenId> wrong = {3, 50};
  const std::vector<KvBlockId> table = {99};
  const std::vector<Extension> batch = {
      {.blocks = table, .tokens = wrong, .num_rows = 1}, Short().Run(0, 9, 9)};
  const auto results = model->Extend(batch);
  EXPECT_EQ(results[0].status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(results[1].ok()) << results[1].status();
  EXPECT_TRUE(std::equal(alone.begin(), alone.begin() + 50,
                         results[1]->Row(0).begin()));
}

TEST(CudaCausalLmTest, RowsLiveOnAfterTheNextPassAndAfterTheModel) {
  LogitRows rows;
  std::vector<float> expected;
  {
    Model model;
    rows = *model->Extend({Short().Run(0, 9, 2)})[0];
    expected.assign(rows.Row(1).begin(), rows.Row(1).end());
    model.Extend({Short().Run(0, 11, 2)});
  }
  EXPECT_TRUE(
      std::equal(expected.begin(), expected.end(), rows.Row(1).begin()));
}

TEST(CudaCausalLmTest, BlocksThatHaveNoMemoryAreRefusedAndFewerAreNot) {
  auto model = MakeSmallModel();
  ASSERT_TRUE(model.ok()) << model.status();
  // A GPU has a little more than it says, in pieces of its own.
  const int64_t too_much = 2 * (*model)->AvailableKvBytes();
  const int too_many =
      static_cast<int>(too_much / (*model)->info().kv_block_bytes);
  const absl::Status status = (*model)->AllocateKvBlocks(too_many);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("KV blocks: out of"));
  EXPECT_TRUE((*model)->AllocateKvBlocks(10).ok());
}

TEST(CudaCausalLmTest, SizesThatTheKernelsDoNotTakeAreRefused) {
  ModelConfig wide = SmallConfig(), large = SmallConfig();
  wide.head_dim = 256;
  large.vocab_size = 524289;
  for (const auto& [config, what] : {std::pair(wide, "head_dim 256"),
                                     std::pair(large, "vocab_size 524289")}) {
    const absl::Status status = CudaTransformer::Check(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }
  large.vocab_size = 524288;
  EXPECT_TRUE(CudaTransformer::Check(large).ok());
}

}  // namespace
}  // namespace outrider
