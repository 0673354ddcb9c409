// SPDX-License-Identifier: Apache-2.0
// Drafts that a model on a device draws by itself, one graph a token, against
// those that the host draws row by row with the same coins.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/cuda_model/small_model.h"
#include "core/sampling/draft_options.h"
#include "core/sampling/sampling_params.h"
#include "core/testing/draw_on_host.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr int kLoopBlocks = 60;
constexpr int kLoopVocabulary = 50;

// A session of a drafter's: what is asked of each of its rows.
struct LoopSession {
  int first_block = 0;
  int length = 0;  // tokens that it begins with
  SamplingParams sampling = {};
  DraftOptions options = {.support_size = 20, .support_mass = 1};
  bool is_coupled = false;
  int count = 20;  // of the greatest logits
  int salt = 0;

  std::vector<KvBlockId> Table() const {
    std::vector<KvBlockId> table;
    for (int i = 0; i < NumKvBlocks(length + 12); ++i) {
      table.push_back(first_block + (i * 7) % 25);
    }
    return table;
  }
  std::vector<TokenId> Text() const {
    std::vector<TokenId> tokens;
    for (int i = 0; i < length; ++i) {
      tokens.push_back((i * 31 + salt * 17 + i / 7) % kLoopVocabulary);
    }
    return tokens;
  }
  RowQuestion Question(int position) const {
    return {
        .vocab_size = kLoopVocabulary - 2,
        .temperature = IsGreedy(sampling) ? 0 : sampling.temperature,
        .what = TopQuestion{
            .count = count,
            .next = NextDraw{.top_k = sampling.top_k,
                             .min_p = sampling.min_p,
                             .top_p = sampling.top_p,
                             .support_size = options.support_size,
                             .support_mass = options.support_mass,
                             .round_weights = options.round_weights,
                             .is_coupled = is_coupled,
                             .seed = 77,
                             .position = static_cast<uint64_t>(position),
                             .generation = static_cast<uint64_t>(salt) + 5}}};
  }
};

// The rows of a text that goes on, and the tokens between them.
struct TextRun {
  std::vector<TokenId> tokens = {};
  std::vector<TopAnswer> rows = {};
};

class DrawLoopTest : public ::testing::Test {
 protected:
  void Make(const CudaLimits& limits = {}) {
    auto model = MakeSmallModel(limits);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    ASSERT_TRUE(model_->AllocateKvBlocks(kLoopBlocks).ok());
  }

  // The sessions' last tokens as one pass, after passes that fill the caches.
  std::vector<LogitRows> Extend(const std::vector<LoopSession>& sessions,
                                const std::vector<int>& max_drawn) {
    std::vector<std::vector<KvBlockId>> tables;
    std::vector<std::vector<TokenId>> texts;
    std::vector<RowQuestion> questions;
    for (const LoopSession& session : sessions) {
      tables.push_back(session.Table());
      texts.push_back(session.Text());
      questions.push_back(session.Question(session.length));
    }
    std::vector<Extension> fills, lasts;
    for (size_t i = 0; i < sessions.size(); ++i) {
      const int cached = sessions[i].length - 2;
      const auto text = absl::MakeConstSpan(texts[i]);
      fills.push_back({.blocks = tables[i], .tokens = text.first(cached)});
      lasts.push_back({.blocks = tables[i],
                       .cached_length = cached,
                       .tokens = text.subspan(cached),
                       .num_rows = 1,
                       .questions = {&questions[i], 1},
                       .max_drawn = max_drawn[i]});
    }
    for (const auto& result : model_->Extend(fills)) EXPECT_TRUE(result.ok());
    std::vector<LogitRows> rows;
    for (auto& result : model_->Extend(lasts)) {
      EXPECT_TRUE(result.ok()) << result.status();
      rows.push_back(*std::move(result));
    }
    return rows;
  }

  // The session's whole text as one pass, with that question of its last row.
  LogitRows ExtendWhole(const LoopSession& session, const RowQuestion& question,
                        int max_drawn) {
    const std::vector<TokenId> text = session.Text();
    const std::vector<KvBlockId> table = session.Table();
    const Extension extension = {.blocks = table,
                                 .tokens = text,
                                 .num_rows = 1,
                                 .questions = {&question, 1},
                                 .max_drawn = max_drawn};
    auto rows = model_->Extend({&extension, 1});
    EXPECT_TRUE(rows[0].ok()) << rows[0].status();
    return *std::move(rows[0]);
  }

  static TextRun RunOf(const LogitRows& rows) {
    TextRun run = {.tokens = {rows.drawn().begin(), rows.drawn().end()}};
    for (int i = 0; i < rows.num_rows(); ++i) {
      const RowView row = rows.View(i);
      EXPECT_NE(row.answer, nullptr) << i;
      if (row.answer == nullptr) break;
      run.rows.push_back(std::get<TopAnswer>(*row.answer));
    }
    return run;
  }

  // The same by one pass a token, which the host draws: on a model of its own,
  // alone.
  static TextRun ByTheHost(const LoopSession& session, int num_drawn) {
    auto model = MakeSmallModel();
    EXPECT_TRUE(model.ok() && (*model)->AllocateKvBlocks(kLoopBlocks).ok());
    std::vector<TokenId> text = session.Text();
    const std::vector<KvBlockId> table = session.Table();
    TextRun run;
    int cached = 0;
    for (int i = 0; i <= num_drawn; ++i) {
      const int length = session.length + i;
      const RowQuestion question = session.Question(length);
      const Extension extension = {
          .blocks = table,
          .cached_length = cached,
          .tokens = absl::MakeConstSpan(text).subspan(cached),
          .num_rows = 1,
          .questions = {&question, 1}};
      const auto rows = (*model)->Extend({&extension, 1});
      EXPECT_TRUE(rows[0].ok()) << rows[0].status();
      const RowView row = rows[0]->View(0);
      run.rows.push_back(std::get<TopAnswer>(*row.answer));
      cached = length;
      if (i == num_drawn) break;
      const auto token =
          testing::DrawOnHost(run.rows.back(), question.temperature,
                              *std::get<TopQuestion>(question.what).next);
      EXPECT_TRUE(token.has_value());
      text.push_back(token.value_or(0));
      run.tokens.push_back(text.back());
    }
    return run;
  }

  static void ExpectSame(const TextRun& run, const TextRun& right) {
    EXPECT_EQ(run.tokens, right.tokens);
    ASSERT_EQ(run.rows.size(), right.rows.size());
    for (size_t i = 0; i < run.rows.size(); ++i) {
      EXPECT_EQ(run.rows[i].ids, right.rows[i].ids) << i;
      EXPECT_EQ(run.rows[i].logits, right.rows[i].logits) << i;
      EXPECT_EQ(run.rows[i].rest, right.rows[i].rest) << i;
    }
  }

  const DeviceCounters& counters() const { return *model_->device_counters(); }

  std::unique_ptr<CausalLm> model_;
};

std::vector<LoopSession> AllSessions() {
  return {
      {.length = 30, .sampling = {.top_k = 20}},
      {.first_block = 25,
       .length = 253,  // and over the end of a split of the context
       .sampling = {.temperature = 0.8, .top_p = 0.6},
       .options = {.support_size = 4, .support_mass = 0.9},
       .salt = 1},
      {.first_block = 50,
       .length = 14,
       .sampling = {.temperature = 0},
       .count = 1,
       .salt = 2},
      {.first_block = 52,
       .length = 15,
       .sampling = {.min_p = 0.1},
       .options = {.support_size = 20, .round_weights = false},
       .count = 48,
       .salt = 3},
      {.first_block = 54,
       .length = 9,
       .sampling = {.top_k = 7},
       .is_coupled = true,
       .count = 7,
       .salt = 4},
  };
}

LoopSession Small(LoopSession session, int first_block) {
  session.first_block = first_block;
  return session;
}

TEST_F(DrawLoopTest, WhatIsDrawnInARowIsWhatTheHostDrawsOneByOne) {
  for (const LoopSession& session : AllSessions()) {
    SCOPED_TRACE(session.salt);
    Make();
    const auto rows = Extend({Small(session, 0)}, {5});
    const TextRun right = ByTheHost(Small(session, 0), 5);
    ASSERT_EQ(right.tokens.size(), 5u);
    ExpectSame(RunOf(rows[0]), right);
    EXPECT_EQ(counters().num_drawn_tokens, 5);
    EXPECT_EQ(counters().num_answered_rows, 6);
    EXPECT_EQ(counters().num_copied_rows, 0);
  }
}

TEST_F(DrawLoopTest, SessionsOfABatchGoOnAsFarAsEachMay) {
  const std::vector<LoopSession> sessions = {
      Small(AllSessions()[1], 0), Small(AllSessions()[0], 25),
      Small(AllSessions()[2], 40), Small(AllSessions()[4], 50)};
  const std::vector<int> max_drawn = {5, 1, 3, 0};
  std::vector<TextRun> right;
  for (size_t i = 0; i < sessions.size(); ++i) {
    right.push_back(ByTheHost(sessions[i], max_drawn[i]));
  }
  for (const CudaLimits& limits :
       {CudaLimits{}, CudaLimits{.rows = 6, .loop_sessions = 4},
        // Attention takes several launches.
        CudaLimits{.attention_floats = 1},
        // Each session is taken by whoever is free.
        CudaLimits{.answers = {.num_threads = 3, .logits_of_part = 1}}}) {
    Make(limits);
    const auto rows = Extend(sessions, max_drawn);
    for (size_t i = 0; i < sessions.size(); ++i) {
      SCOPED_TRACE(i);
      ExpectSame(RunOf(rows[i]), right[i]);
    }
    EXPECT_EQ(counters().num_drawn_tokens, 9);
  }
}

TEST_F(DrawLoopTest, AStepIsOneLaunchWhoeverIsInIt) {
  Make();
  const LoopSession session = Small(AllSessions()[0], 0);
  Extend({session}, {5});
  const int64_t before = counters().num_graph_replays;
  EXPECT_EQ(before, 4);  // the first of a shape is launched kernel by kernel
  Extend({session}, {5});
  EXPECT_EQ(counters().num_graph_replays - before, 6);
}

TEST_F(DrawLoopTest, WhatWasDrawnIsCachedLikeAnyText) {
  Make();
  const LoopSession session = Small(AllSessions()[0], 0);
  const auto rows = Extend({session}, {5});
  // The last tokens drawn once more, by a pass of their own.
  std::vector<TokenId> tokens = {rows[0].drawn().begin() + 2,
                                 rows[0].drawn().end()};
  const std::vector<KvBlockId> table = session.Table();
  const RowQuestion question = session.Question(session.length + 5);
  const std::vector<RowQuestion> questions(3, question);
  const Extension again = {.blocks = table,
                           .cached_length = session.length + 2,
                           .tokens = tokens,
                           .num_rows = 3,
                           .questions = questions};
  const auto same = model_->Extend({&again, 1});
  ASSERT_TRUE(same[0].ok());
  const TextRun run = RunOf(rows[0]), repeated = RunOf(*same[0]);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(repeated.rows[i].logits, run.rows[3 + i].logits) << i;
  }
}

TEST_F(DrawLoopTest, ARowThatMakesTheTextUnlikelyIsTheLast) {
  Make();
  const LoopSession session = Small(AllSessions()[0], 0);
  RowQuestion question = session.Question(session.length);
  auto& top = std::get<TopQuestion>(question.what);
  top.wants_top_probability = true;
  const TextRun all = RunOf(ExtendWhole(session, question, /*max_drawn=*/5));
  ASSERT_EQ(all.rows.size(), 6u);
  double probability = 1;
  for (size_t i = 0; i < 3; ++i) probability *= all.rows[i].top_probability;
  top.next->min_probability = probability * 1.0001;
  TextRun some = RunOf(ExtendWhole(session, question, /*max_drawn=*/5));
  EXPECT_EQ(some.rows.size(), 3u);
  EXPECT_EQ(some.tokens,
            std::vector<TokenId>(all.tokens.begin(), all.tokens.begin() + 2));
  // What stood before those rows counts.
  top.next->min_probability = probability * 0.9999;
  some = RunOf(ExtendWhole(session, question, /*max_drawn=*/5));
  EXPECT_GT(some.rows.size(), 3u);
  top.next->probability = 0.9998;
  some = RunOf(ExtendWhole(session, question, /*max_drawn=*/5));
  EXPECT_EQ(some.rows.size(), 3u);
}

TEST_F(DrawLoopTest, ARowThatDoesNotDecideEndsTheLoopBeforeIt) {
  Make();
  const LoopSession session = Small(AllSessions()[0], 0);
  for (const int num_decided : {0, 1, 3}) {
    int num_asked = 0;
    RowQuestion question = session.Question(session.length);
    std::get<TopQuestion>(question.what).suffices = [&](const TopAnswer&) {
      return num_asked++ < num_decided;
    };
    const LogitRows rows = ExtendWhole(session, question, /*max_drawn=*/5);
    EXPECT_EQ(rows.num_rows(), std::max(1, num_decided));
    EXPECT_EQ(rows.drawn().size(), rows.num_rows() - 1u);
    // The first row comes whole then.
    EXPECT_EQ(rows.View(0).answer == nullptr, num_decided == 0);
  }
  EXPECT_EQ(counters().num_copied_rows, 1);
}

TEST_F(DrawLoopTest, WhoFindsNoRoomIsAnsweredWithoutGoingOn) {
  Make({.drawn_rows = 7});
  const LoopSession first = Small(AllSessions()[0], 0);
  const LoopSession second = Small(AllSessions()[3], 10);
  const auto rows = Extend({first, second}, {4, 2});
  ExpectSame(RunOf(rows[0]), ByTheHost(first, 4));
  ExpectSame(RunOf(rows[1]), ByTheHost(second, 0));
}

// A kernel writes where it says.
TEST_F(DrawLoopTest, ACoinOfAnotherPositionThanTheTokensIsNotDrawnWith) {
  Make();
  const LoopSession session = Small(AllSessions()[0], 0);
  const RowQuestion question = session.Question(session.length + 1);
  const LogitRows rows = ExtendWhole(session, question, /*max_drawn=*/3);
  EXPECT_EQ(rows.num_rows(), 1);
  EXPECT_TRUE(rows.drawn().empty());
}

TEST_F(DrawLoopTest, PreparedGraphsServeTheFirstLoop) {
  Make({.graph_rows = 2, .capture_time = kTimeForGraphs});
  ASSERT_TRUE(model_->Prepare().ok());
  EXPECT_EQ(counters().num_drawn_tokens, 0);
  Extend({Small(AllSessions()[2], 0)}, {3});
  // One step is longer than those that become graphs: it fills the cache.
  EXPECT_EQ(counters().num_graph_replays, 4);
  EXPECT_EQ(counters().num_late_graphs, 0);
  EXPECT_EQ(counters().num_drawn_tokens, 3);
}

}  // namespace
}  // namespace outrider
