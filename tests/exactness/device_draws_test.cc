// SPDX-License-Identifier: Apache-2.0
// Tokens as core/kernels/cuda draws them from the greatest logits of a row,
// against what the host draws from the same answer with the same coins.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/cuda_model/device_question.h"
#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/draw_next.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/testing/answer_on_host.h"
#include "core/testing/draw_on_host.h"
#include "gtest/gtest.h"
#include "tests/exactness/scored_rows.h"

namespace outrider::testing {
namespace {

using kernels::cuda::AttentionTile;
using kernels::cuda::DeviceArray;
using kernels::cuda::DrawNextArgs;
using kernels::cuda::DrawnRow;
using kernels::cuda::DrawSession;
using kernels::cuda::TopRow;
using kernels::cuda::TopRowResult;

constexpr int kSpareBlock = 99;

// One way to draw, as a drafter asks for it.
struct Law {
  double temperature = 1;
  int count = 0;  // of the greatest that are told
  NextDraw next = {};
};

std::vector<Law> Laws() {
  return {
      {.temperature = 0, .count = 1, .next = {.support_size = 32}},
      {.temperature = 0.8,
       .count = 40,
       .next = {.top_k = 40, .support_size = 40, .round_weights = true}},
      {.temperature = 0.8,
       .count = 40,
       .next = {.top_k = 40, .support_size = 7}},
      {.count = 300, .next = {.top_p = 0.9, .support_size = 1024}},
      {.count = 300,
       .next = {.top_p = 0.9, .support_size = 5, .round_weights = true}},
      {.temperature = 1.3,
       .count = 300,
       .next = {.top_p = 0.8, .support_size = 60, .support_mass = 0.7}},
      {.count = 300, .next = {.min_p = 0.05, .support_size = 1024}},
      {.count = 300,
       .next = {.min_p = 0.02, .top_p = 0.5, .support_size = 1024}},
      {.temperature = 0.7,
       .count = 300,
       .next = {.top_p = 0.98, .support_size = 1024, .is_coupled = true}},
      {.count = 50,
       .next = {.top_k = 50, .support_size = 50, .is_coupled = true}},
  };
}

// A row, what is told of it, and how its token is drawn.
struct Drawn {
  RowQuestion question = {};
  NextDraw next = {};
  TopAnswer answer = {};
};

Drawn DrawnOf(const std::vector<float>& logits, const Law& law,
              uint64_t position) {
  Drawn drawn = {
      .question = {.vocab_size = static_cast<int>(logits.size()),
                   .temperature = law.temperature,
                   .what = TopQuestion{.count = law.count,
                                       .wants_top_probability = true}},
      .next = law.next};
  drawn.next.seed = 0x1234567890abcdefu + position / 7;
  drawn.next.position = position;
  drawn.next.generation = position * 3 + (position << 35);
  drawn.answer = std::get<TopAnswer>(*AnswerOnHost(drawn.question, logits));
  return drawn;
}

// The i-th of many coins at few positions.
Drawn WithCoin(const std::vector<float>& logits, const Law& law, uint64_t i) {
  Drawn drawn = DrawnOf(logits, law, 20 + i % 100);
  drawn.next.generation += i << 8;
  return drawn;
}

std::optional<TokenId> HostsToken(const Drawn& drawn) {
  return DrawOnHost(drawn.answer, drawn.question.temperature, drawn.next);
}

// Sessions side by side in the device's memory, each with a block table of its
// own: 10 * i, 10 * i + 1, ...
class Sessions {
 public:
  Sessions(const std::vector<Drawn>& all, int num_left, int num_tiles)
      : num_sessions_(static_cast<int>(all.size())), num_tiles_(num_tiles) {
    std::vector<DrawSession> sessions;
    std::vector<TopRow> rows;
    std::vector<TopRowResult> found;
    std::vector<int> ids, tables;
    std::vector<float> logits;
    std::vector<AttentionTile> tiles;
    for (const Drawn& drawn : all) {
      const auto count = static_cast<int>(drawn.answer.ids.size());
      const auto index = static_cast<int>(sessions.size());
      DrawSession& session = sessions.emplace_back(SessionOf(drawn.next));
      session.next_record = 2 * index;
      session.num_left = num_left;
      rows.push_back({.vocab_size = drawn.question.vocab_size,
                      .scale = ScaleOf(drawn.question.temperature),
                      .first_top = static_cast<int>(ids.size()),
                      .num_top = count});
      found.push_back({.count = count,
                       .is_valid = true,
                       .rest = drawn.answer.rest,
                       .mass = 1 / drawn.answer.top_probability});
      ids.insert(ids.end(), drawn.answer.ids.begin(), drawn.answer.ids.end());
      logits.insert(logits.end(), drawn.answer.logits.begin(),
                    drawn.answer.logits.end());
      for (int i = 0; i < num_tiles; ++i) {
        tiles.push_back({.first_table_entry = static_cast<int>(tables.size()),
                         .first_row = index,
                         .num_rows = 1});
      }
      for (int i = 0; i < kBlocks; ++i) tables.push_back(10 * index + i);
    }
    sessions_.emplace(sessions);
    rows_.emplace(rows);
    found_.emplace(found);
    ids_.emplace(ids);
    logits_.emplace(logits);
    tiles_.emplace(tiles);
    tables_.emplace(tables);
  }

  void Draw() {
    kernels::cuda::DrawNext({.sessions = sessions_->data(),
                             .num_sessions = num_sessions_,
                             .rows = rows_->data(),
                             .found = found_->data(),
                             .ids = ids_->data(),
                             .top_logits = logits_->data(),
                             .records = records_.data(),
                             .tokens = tokens_.data(),
                             .positions = positions_.data(),
                             .blocks = blocks_.data(),
                             .tiles = tiles_->data(),
                             .num_tiles = num_tiles_,
                             .tables = tables_->data(),
                             .spare_block = kSpareBlock,
                             .logits = next_logits_.data(),
                             .vocab_size = kStride},
                            nullptr);
  }

  static constexpr int kBlocks = 8;
  static constexpr int kStride = 1000;
  static constexpr size_t kMost = 24;

  const int num_sessions_;
  const int num_tiles_;
  std::optional<DeviceArray<DrawSession>> sessions_;
  std::optional<DeviceArray<TopRow>> rows_;
  std::optional<DeviceArray<TopRowResult>> found_;
  std::optional<DeviceArray<int>> ids_;
  std::optional<DeviceArray<float>> logits_;
  std::optional<DeviceArray<AttentionTile>> tiles_;
  std::optional<DeviceArray<int>> tables_;
  const DeviceArray<DrawnRow> records_{2 * kMost};
  const DeviceArray<int> tokens_{kMost};
  const DeviceArray<int> positions_{kMost};
  const DeviceArray<int> blocks_{kMost};
  const DeviceArray<float> next_logits_{kMost * kStride};
};

// Runs threads in three orders, with other logits each time.
class DeviceDrawsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  DeviceDrawsTest() { kernels::cuda::emulation::SetSeed(GetParam()); }

  static std::vector<float> Logits(int size, uint32_t seed, float spread) {
    return testing::Logits(size, seed + DataOfOrder(GetParam()), spread);
  }
};
INSTANTIATE_TEST_SUITE_P(Orders, DeviceDrawsTest,
                         ::testing::Values(uint64_t{1}));
INSTANTIATE_TEST_SUITE_P(OtherOrders, DeviceDrawsTest,
                         ::testing::Values(uint64_t{2}, uint64_t{3}));

// So the law is the host's, coin for coin.
TEST_P(DeviceDrawsTest, ATokenIsTheHostsForEveryLawAndCoin) {
  int num_decided = 0, num_first = 0;
  for (const Law& law : Laws()) {
    std::vector<Drawn> all;
    for (uint64_t i = 0; i < Sessions::kMost; ++i) {
      // There are only a few rows, some with ties, so that coins matter.
      std::vector<float> logits =
          Logits(500, static_cast<uint32_t>(i % 4) + 1, 6.0f);
      if (i % 4 == 3) {
        for (float& x : logits) x = std::round(x);
      }
      all.push_back(DrawnOf(logits, law, 20 + i % 100));
    }
    Sessions sessions(all, /*num_left=*/2, /*num_tiles=*/1);
    sessions.Draw();
    const std::vector<DrawnRow> records = sessions.records_.Read();
    for (size_t i = 0; i < all.size(); ++i) {
      const auto right = HostsToken(all[i]);
      if (!right.has_value()) continue;
      ++num_decided;
      num_first += *right == all[i].answer.ids[0] ? 1 : 0;
      EXPECT_EQ(records[2 * i].token, *right) << i;
    }
  }
  EXPECT_GT(num_decided, 200);
  EXPECT_LT(num_first, 120);
}

TEST_P(DeviceDrawsTest, TokensAreTheHostsFromOneToSixteenRows) {
  std::vector<Drawn> all;
  for (uint32_t i = 0; i < 16; ++i) {
    all.push_back(
        DrawnOf(Logits(300, i, 6.0f), Laws()[i % Laws().size()], 20 + 5 * i));
    Sessions sessions(all, /*num_left=*/2, /*num_tiles=*/1);
    sessions.Draw();
    const auto records = sessions.records_.Read();
    const auto tokens = sessions.tokens_.Read();
    const auto positions = sessions.positions_.Read();
    for (size_t j = 0; j < all.size(); ++j) {
      SCOPED_TRACE(i);
      // The host may have asked for the whole row.
      const TokenId right = HostsToken(all[j]).value_or(tokens[j]);
      EXPECT_EQ(tokens[j], right) << j;
      EXPECT_EQ(records[2 * j].token, tokens[j]) << j;
      EXPECT_EQ(positions[j], static_cast<int>(all[j].next.position)) << j;
    }
  }
}

TEST_P(DeviceDrawsTest, AsManyAsAThreadEachAreDrawnFrom) {
  for (const int size : {1023, 1024, 3000}) {
    for (const bool is_coupled : {false, true}) {
      const Law law = {
          .count = 1024,
          .next = {
              .top_p = 0.9, .support_size = 1000, .is_coupled = is_coupled}};
      const Drawn drawn = DrawnOf(Logits(size, 5, 9.0f), law, 33);
      Sessions sessions({drawn}, /*num_left=*/2, /*num_tiles=*/1);
      sessions.Draw();
      EXPECT_EQ(sessions.records_.Read()[0].token, HostsToken(drawn)) << size;
    }
  }
}

// Four tokens are equal and all there is: half of the mass is two of them, and
// none is less likely than the greatest.
TEST_P(DeviceDrawsTest, WhereAShareIsReachedExactlyTheHostsTokensAreLeft) {
  std::vector<float> logits(100, -3000.0f);
  std::fill_n(logits.begin() + 40, 4, 1.0f);
  const std::vector<std::pair<NextDraw, int>> laws = {
      {{.top_p = 0.5, .support_size = 50}, 2},
      {{.support_size = 50, .support_mass = 0.5}, 2},
      {{.support_size = 3}, 3},
      {{.min_p = 1.0, .support_size = 50}, 4}};
  for (const auto& [next, num_left] : laws) {
    std::vector<Drawn> all;
    for (uint64_t i = 0; i < Sessions::kMost; ++i) {
      all.push_back(DrawnOf(logits, {.count = 50, .next = next}, 20 + i));
    }
    Sessions sessions(all, /*num_left=*/2, /*num_tiles=*/1);
    sessions.Draw();
    const std::vector<DrawnRow> records = sessions.records_.Read();
    std::set<TokenId> drawn;
    for (size_t i = 0; i < all.size(); ++i) {
      drawn.insert(records[2 * i].token);
      EXPECT_EQ(records[2 * i].token, HostsToken(all[i]));
    }
    EXPECT_EQ(drawn.size(), static_cast<size_t>(num_left));
    EXPECT_EQ(*drawn.begin(), 40);
    EXPECT_EQ(*drawn.rbegin(), 40 + num_left - 1);
  }
}

// In whichever warp it is found, what is cut is cut against it: a greatest that
// was passed over would bring in tokens just below min_p.
TEST_P(DeviceDrawsTest, TheGreatestMayBeOfAnyThread) {
  constexpr size_t kWarp = 32;
  std::vector<Drawn> all;
  for (size_t i = 0; i < Sessions::kMost; ++i) {
    std::vector<float> logits(Sessions::kMost * kWarp, std::log(0.48f));
    logits[i * kWarp + 5 + i / 2] = 0.0f;
    logits[(i + 2) % Sessions::kMost * kWarp] = std::log(0.9f);
    all.push_back(DrawnOf(
        logits, {.count = 1000, .next = {.min_p = 0.5, .support_size = 1000}},
        20 + i));
  }
  Sessions sessions(all, /*num_left=*/2, /*num_tiles=*/1);
  sessions.Draw();
  const std::vector<DrawnRow> records = sessions.records_.Read();
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(records[2 * i].token, HostsToken(all[i])) << i;
  }
}

TEST_P(DeviceDrawsTest, TheLastOfAsManyAsThereAreThreadsIsDrawn) {
  const Law law = {.count = 1024,
                   .next = {.top_k = 1024, .support_size = 1024}};
  const std::vector<float> logits(1024, 0.5f);
  std::optional<Drawn> last;
  for (uint64_t i = 0; i < 20000 && !last.has_value(); ++i) {
    const Drawn drawn = WithCoin(logits, law, i);
    if (HostsToken(drawn) == 1023) last = drawn;
  }
  ASSERT_TRUE(last.has_value());
  Sessions sessions({*last}, /*num_left=*/2, /*num_tiles=*/1);
  sessions.Draw();
  EXPECT_EQ(sessions.records_.Read()[0].token, 1023);
}

// Coins for which rounded weights give another token than exact ones.
TEST_P(DeviceDrawsTest, WeightsAreRoundedAsTheHostRoundsThem) {
  const Law exact = {.count = 40, .next = {.top_k = 40, .support_size = 40}};
  Law rounded = exact;
  rounded.next.round_weights = true;
  const std::vector<float> logits = Logits(200, 3, 2.0f);
  std::vector<Drawn> all;
  for (uint64_t i = 0; i < 100000 && all.size() < Sessions::kMost; ++i) {
    const Drawn drawn = WithCoin(logits, rounded, i);
    if (HostsToken(drawn) == HostsToken(WithCoin(logits, exact, i))) continue;
    all.push_back(drawn);
  }
  ASSERT_FALSE(all.empty());
  Sessions sessions(all, /*num_left=*/2, /*num_tiles=*/1);
  sessions.Draw();
  const std::vector<DrawnRow> records = sessions.records_.Read();
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(records[2 * i].token, HostsToken(all[i])) << i;
  }
}

TEST_P(DeviceDrawsTest, TheTokenTakesItsPlaceInTheStepThatComes) {
  std::vector<Drawn> all;
  for (uint64_t i = 0; i < 3; ++i) {
    all.push_back(DrawnOf(Logits(200, 7, 4.0f), Laws()[1], 30 + 9 * i));
  }
  Sessions sessions(all, /*num_left=*/3, /*num_tiles=*/2);
  const auto before = sessions.rows_->Read();
  for (int step = 0; step < 2; ++step) {
    sessions.Draw();
    const auto records = sessions.records_.Read();
    const auto tokens = sessions.tokens_.Read();
    const auto positions = sessions.positions_.Read();
    const auto blocks = sessions.blocks_.Read();
    const auto tiles = sessions.tiles_->Read();
    const auto rows = sessions.rows_->Read();
    const auto states = sessions.sessions_->Read();
    for (int i = 0; i < 3; ++i) {
      const int position = 30 + 9 * i + step;
      EXPECT_EQ(tokens[i], records[2 * i + step].token);
      EXPECT_EQ(records[2 * i + step].found.count, before[i].num_top);
      EXPECT_EQ(positions[i], position);
      EXPECT_EQ(blocks[i], 10 * i + position / 16);
      for (const int tile : {2 * i, 2 * i + 1}) {
        EXPECT_EQ(tiles[tile].first_position, position);
        EXPECT_EQ(tiles[tile].num_rows, 1);
      }
      EXPECT_EQ(rows[i].logits,
                sessions.next_logits_.data() + i * Sessions::kStride);
      EXPECT_EQ(rows[i].first_top, before[i].first_top + before[i].num_top);
      EXPECT_EQ(states[i].position, static_cast<uint64_t>(position) + 1);
      EXPECT_EQ(states[i].num_left, 2 - step);
    }
    // The second step finds the same rows where the first one put its own.
    auto again = rows;
    for (size_t i = 0; i < 3; ++i) again[i].first_top = before[i].first_top;
    sessions.rows_.emplace(again);
    if (step == 0) continue;
    for (size_t i = 0; i < 3; ++i) {
      all[i].next.position += 1;
      EXPECT_EQ(records[2 * i + 1].token, HostsToken(all[i]));
    }
  }
}

TEST_P(DeviceDrawsTest, AfterWhatIsExactlyAsLikelyAsAskedForTheDraftGoesOn) {
  Drawn drawn = DrawnOf(Logits(200, 7, 4.0f), Laws()[1], 30);
  drawn.answer.top_probability = 0.5;  // whose products are exact
  drawn.next.probability = 0.5;
  drawn.next.min_probability = 0.25;
  Sessions sessions({drawn}, /*num_left=*/3, /*num_tiles=*/1);
  sessions.Draw();
  EXPECT_GE(sessions.records_.Read()[0].token, 0);
}

// Of four sessions the product of what their rows' first choices have is just
// enough, just too little, and so after one row more.
TEST_P(DeviceDrawsTest, AfterWhatIsUnlikelyNothingIsDrawn) {
  Drawn drawn = DrawnOf(Logits(200, 7, 4.0f), Laws()[1], 30);
  const double each = drawn.answer.top_probability;
  drawn.next.probability = 0.5;
  std::vector<Drawn> all;
  for (const double least : {each / 2, each * each / 2}) {
    for (const double factor : {0.999, 1.001}) {
      drawn.next.min_probability = least * factor;
      all.push_back(drawn);
    }
  }
  Sessions sessions(all, /*num_left=*/3, /*num_tiles=*/1);
  const auto before = sessions.rows_->Read();
  const std::vector<std::vector<bool>> goes_on = {{true, false, true, true},
                                                  {false, false, true, false}};
  for (size_t step = 0; step < 2; ++step) {
    sessions.Draw();
    const auto records = sessions.records_.Read();
    const auto states = sessions.sessions_->Read();
    for (size_t i = 0; i < all.size(); ++i) {
      if (step == 1 && !goes_on[0][i]) continue;  // it is padding
      SCOPED_TRACE(i);
      EXPECT_EQ(records[2 * i + step].token >= 0, goes_on[step][i]);
      EXPECT_EQ(records[2 * i + step].found.mass, 1 / each);
      EXPECT_EQ(states[i].num_left > 0, goes_on[step][i]);
    }
    auto again = sessions.rows_->Read();  // the same rows once more
    for (size_t i = 0; i < all.size(); ++i) {
      if (goes_on[step][i]) again[i].first_top = before[i].first_top;
    }
    sessions.rows_.emplace(again);
  }
}

TEST_P(DeviceDrawsTest, WhoHasNoRowLeftIsPadding) {
  std::vector<Drawn> all;
  for (uint64_t i = 0; i < 2; ++i) {
    all.push_back(DrawnOf(Logits(200, 7, 4.0f), Laws()[1], 30));
  }
  Sessions sessions(all, /*num_left=*/1, /*num_tiles=*/2);
  for (int step = 0; step < 2; ++step) {
    sessions.Draw();  // the second time it has nothing to do
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(sessions.records_.Read()[2 * i].token, -1);
      EXPECT_EQ(sessions.tokens_.Read()[i], 0);
      EXPECT_EQ(sessions.positions_.Read()[i], 0);
      EXPECT_EQ(sessions.blocks_.Read()[i], kSpareBlock);
      EXPECT_EQ(sessions.tiles_->Read()[2 * i + 1].num_rows, 0);
      EXPECT_EQ(sessions.rows_->Read()[i].vocab_size, 0);
      EXPECT_EQ(sessions.sessions_->Read()[i].next_record, 2 * i + 1);
    }
  }
}

TEST_P(DeviceDrawsTest, FromARowThatIsNoneNothingIsDrawn) {
  for (const bool is_coupled : {false, true}) {
    Law law = Laws()[3];
    law.next.is_coupled = is_coupled;
    const Drawn drawn = DrawnOf(Logits(200, 7, 4.0f), law, 30);
    for (const bool is_valid : {false, true}) {
      Sessions sessions({drawn}, /*num_left=*/3, /*num_tiles=*/1);
      sessions.found_.emplace(std::vector<TopRowResult>{
          {.count = is_valid ? 0 : 5, .is_valid = is_valid}});
      sessions.Draw();
      EXPECT_EQ(sessions.records_.Read()[0].token, -1);
      EXPECT_EQ(sessions.sessions_->Read()[0].num_left, 0);
      EXPECT_EQ(sessions.blocks_.Read()[0], kSpareBlock);
    }
  }
}

}  // namespace
}  // namespace outrider::testing
