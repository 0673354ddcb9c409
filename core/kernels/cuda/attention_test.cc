// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/base/kv_block.h"
#include "core/kernels/cuda/kernel_test.h"

namespace outrider::kernels::cuda {
namespace {

static_assert(kBlockLength == kKvBlockLength);

constexpr float kScale = 0.17f;

// The last rows of a session in a pass.
struct Segment {
  int session = 0;
  int first_position = 0;
  int num_rows = 0;
};

// How a pass's tiles and pairs are numbered, which changes no bit.
struct Arrangement {
  int most_beside = 1000;    // tiles of a session whose pairs take turns
  int pairs_at_once = 1000;  // of a launch; at least a tile's
  int num_drawn = 0;         // positions that pairs reach beyond the rows'
  int num_nobodys = 1;       // tiles after each session's, and pairs after all
  bool is_backward = false;  // the last launch comes first
};

// Sessions with random keys, values and queries at every position. Places in
// blocks after a session's end, and blocks of nobody, are NaN.
class Sessions {
 public:
  Sessions(Element element, uint32_t data, const Heads& heads,
           std::vector<int> lengths, int window = 0, uint32_t order = 1)
      : element_(element),
        data_(data),
        heads_(heads),
        window_(window),
        lengths_(std::move(lengths)) {
    int num_blocks = 3;  // of nobody
    for (const int length : lengths_) num_blocks += NumKvBlocks(length);
    std::vector<int> free_blocks(num_blocks);
    std::iota(free_blocks.begin(), free_blocks.end(), 0);
    std::shuffle(free_blocks.begin(), free_blocks.end(), std::mt19937(order));
    block_size_ = size_t(heads.num_kv_heads) * kBlockLength * heads.head_dim;
    keys_.assign(num_blocks * block_size_, BitsOf(element, NAN));
    values_ = keys_;
    for (size_t s = 0; s < lengths_.size(); ++s) {
      first_entry_.push_back(static_cast<int>(tables_.size()));
      for (int i = 0; i < NumKvBlocks(lengths_[s]); ++i) {
        tables_.push_back(free_blocks.back());
        free_blocks.pop_back();
      }
      FillSession(static_cast<int>(s));
    }
  }

  int row_size() const { return heads_.num_heads * heads_.head_dim; }

  // Elements d on of a session's key at a position, for a head of keys.
  size_t Place(int session, int position, int kv_head, int d) const {
    const int block = tables_[first_entry_[session] + position / kBlockLength];
    return block * block_size_ +
           (size_t(kv_head) * kBlockLength + position % kBlockLength) *
               heads_.head_dim +
           d;
  }

  std::vector<uint16_t> Run(const std::vector<Segment>& segments,
                            const Arrangement& arrangement = {}) const {
    const int group = heads_.num_heads / heads_.num_kv_heads;
    std::vector<AttentionTile> tiles;
    std::vector<uint16_t> queries;
    int first_row = 0, num_pairs = 0;
    for (const Segment& segment : segments) {
      const int num_splits = NumSplits(
          segment.first_position + segment.num_rows + arrangement.num_drawn);
      const int num_tiles = NumTiles(segment.num_rows, group);
      for (int done = 0; done < num_tiles;) {
        const int at_once = arrangement.pairs_at_once;
        int room = at_once - num_pairs % at_once;
        if (room < num_splits) num_pairs += std::exchange(room, at_once);
        const int num_beside = std::min(
            {num_tiles - done, arrangement.most_beside, room / num_splits});
        for (int i = 0; i < num_beside; ++i, ++done) {
          tiles.push_back({.first_table_entry = first_entry_[segment.session],
                           .first_row = first_row,
                           .num_rows = segment.num_rows,
                           .first_position = segment.first_position,
                           .first_query = done * kTileQueries,
                           .first_pair = num_pairs + i,
                           .num_beside = num_beside});
        }
        num_pairs += num_beside * num_splits;
      }
      // A graph has places that nobody uses.
      for (int i = 0; i < arrangement.num_nobodys; ++i) {
        tiles.push_back({.first_pair = num_pairs});
      }
      const auto begin = queries_[segment.session].bits.begin() +
                         ptrdiff_t(segment.first_position) * row_size();
      queries.insert(queries.end(), begin,
                     begin + ptrdiff_t(segment.num_rows) * row_size());
      first_row += segment.num_rows;
    }
    num_pairs += arrangement.num_nobodys;
    const int num_tiles = static_cast<int>(tiles.size());
    const DeviceArray<uint16_t> device_queries(queries), keys(keys_),
        values(values_), out(queries.size());
    const DeviceArray<int> tables(tables_);
    const DeviceArray<AttentionTile> device_tiles(tiles);
    const int at_once = std::min(arrangement.pairs_at_once, num_pairs);
    const int num_launches = (num_pairs + at_once - 1) / at_once;
    for (int i = 0; i < num_launches; ++i) {
      const int first =
          at_once * (arrangement.is_backward ? num_launches - 1 - i : i);
      const int count = std::min(at_once, num_pairs - first);
      const DeviceArray<float> scratch(AttentionScratchFloats(heads_, count));
      Attention({.element = element_,
                 .heads = heads_,
                 .queries = device_queries.data(),
                 .kv = {keys.data(), values.data()},
                 .tables = tables.data(),
                 .tiles = device_tiles.data(),
                 .num_tiles = num_tiles,
                 .first_pair = first,
                 .num_pairs = count,
                 .window = window_,
                 .scale = kScale,
                 .scratch = scratch.data(),
                 .out = out.data()},
                nullptr);
    }
    return out.Read();
  }

  // The row of a session at a position, in double.
  std::vector<double> Reference(int session, int position) const {
    const int dim = heads_.head_dim;
    const int begin = window_ > 0 ? std::max(0, position - window_ + 1) : 0;
    std::vector<double> out(row_size(), 0.0);
    for (int head = 0; head < heads_.num_heads; ++head) {
      const int kv_head = head / (heads_.num_heads / heads_.num_kv_heads);
      const float* query =
          &queries_[session].values[size_t(position) * row_size() + head * dim];
      std::vector<double> weights;
      for (int j = begin; j <= position; ++j) {
        double dot = 0.0;
        for (int d = 0; d < dim; ++d) {
          dot += double{query[d]} *
                 ValueOf(element_, keys_[Place(session, j, kv_head, d)]);
        }
        weights.push_back(kScale * dot);
      }
      const double top = *std::max_element(weights.begin(), weights.end());
      double total = 0.0;
      for (double& weight : weights) total += weight = std::exp(weight - top);
      for (int j = begin; j <= position; ++j) {
        for (int d = 0; d < dim; ++d) {
          out[head * dim + d] +=
              weights[j - begin] / total *
              ValueOf(element_, values_[Place(session, j, kv_head, d)]);
        }
      }
    }
    return out;
  }

  void Set(std::vector<uint16_t>& elements, size_t place, float x) const {
    elements[place] = BitsOf(element_, x);
  }
  std::vector<uint16_t>& keys() { return keys_; }

 private:
  void FillSession(int session) {
    const int length = lengths_[session];
    const auto seed = data_ + static_cast<uint32_t>(10 * session);
    const size_t size = size_t(length) * heads_.num_kv_heads * heads_.head_dim;
    const auto keys = RandomValues(size, seed + 3);
    const auto values = RandomValues(size, seed + 5);
    size_t next = 0;
    for (int position = 0; position < length; ++position) {
      for (int head = 0; head < heads_.num_kv_heads; ++head) {
        for (int d = 0; d < heads_.head_dim; ++d, ++next) {
          const size_t place = Place(session, position, head, d);
          Set(keys_, place, 2.0f * keys[next]);
          Set(values_, place, values[next]);
        }
      }
    }
    queries_.push_back(
        Round(element_, RandomValues(size_t(length) * row_size(), seed + 7)));
  }

  Element element_;
  uint32_t data_;
  Heads heads_;
  int window_;
  std::vector<int> lengths_;
  size_t block_size_ = 0;
  std::vector<int> tables_;
  std::vector<int> first_entry_;  // by session
  std::vector<uint16_t> keys_, values_;
  std::vector<Rounded> queries_;  // by session, then by position
};

class CudaAttentionTest : public KernelTest {
 protected:
  void ExpectReference(const Sessions& sessions,
                       const std::vector<Segment>& segments) {
    const auto out = ValuesOf(element(), sessions.Run(segments));
    size_t next = 0;
    for (const Segment& segment : segments) {
      for (int i = 0; i < segment.num_rows; ++i) {
        const int position = segment.first_position + i;
        for (const double x : sessions.Reference(segment.session, position)) {
          // Weights and the result are rounded once each.
          ASSERT_NEAR(out[next], x, 1.25 * unit())
              << "session " << segment.session << ", position " << position
              << ", place " << next % sessions.row_size();
          ++next;
        }
      }
    }
    ASSERT_EQ(next, out.size());
  }
};
OUTRIDER_INSTANTIATE_KERNEL_TEST(CudaAttentionTest);

TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionForHeadsOfAnySize) {
  for (int head_dim = 8; head_dim <= 128; head_dim += 8) {
    const Heads heads = {2, 1, head_dim};
    ExpectReference(Sessions(element(), data(), heads, {70}, 0, head_dim),
                    {{0, 65, 5}});
  }
}

TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionForAnyGrouping) {
  for (const int head_dim : {48, 64, 128}) {
    for (const int group : {1, 2, 3, 4, 5, 7, 8, 16, 17}) {
      for (const int num_kv_heads : {1, 2}) {
        const Heads heads = {group * num_kv_heads, num_kv_heads, head_dim};
        ExpectReference(Sessions(element(), data(), heads, {37}), {{0, 31, 6}});
      }
    }
  }
}

// Lengths around those of blocks, of a warp's slice and of a split.
TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionAtEveryBoundary) {
  const std::vector<int> lengths = {1,  15, 16,  17,  63,  64,
                                    65, 66, 255, 256, 257, 530};
  const Sessions sessions(element(), data(), {3, 1, 64}, lengths);
  std::vector<Segment> segments;
  for (size_t i = 0; i < lengths.size(); ++i) {
    segments.push_back({static_cast<int>(i), lengths[i] - 1, 1});
  }
  ExpectReference(sessions, segments);
}

TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionForManySessions) {
  std::vector<int> lengths;
  std::vector<Segment> segments;
  for (int i = 0; i < 64; ++i) {
    const int num_rows = 1 + i % 5;
    lengths.push_back(num_rows + 7 * i % 45);
    segments.push_back({i, lengths.back() - num_rows, num_rows});
  }
  const Sessions sessions(element(), data(), {3, 1, 56}, lengths);
  ExpectReference(sessions, segments);
}

// The merge reads eight splits at a time, of 256 keys each.
TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionOverManySplits) {
  for (const int window : {0, 2500}) {
    const Sessions sessions(element(), data(), {1, 1, 64}, {2048, 2049, 4120},
                            window);
    ExpectReference(sessions, {{0, 2047, 1}, {1, 2048, 1}, {2, 4118, 2}});
    ExpectReference(sessions, {{2, 4119, 1}});
  }
}

// Each has pairs of its own: the long one's are no others'.
TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionForOneLongAmongManyShort) {
  std::vector<int> lengths;
  std::vector<Segment> segments;
  for (int i = 0; i < 40; ++i) {
    const int num_rows = 1 + i % 5;
    lengths.push_back(i == 17 ? 2300 : i % 9 == 4 ? 256 + i % 2 : 5 + i);
    segments.push_back({i, lengths.back() - num_rows, num_rows});
  }
  for (const int window : {0, 300}) {
    const Sessions sessions(element(), data(), {4, 1, 64}, lengths, window);
    ExpectReference(sessions, segments);
  }
}

// A key of the last split outweighs all before it, or weighs nothing beside
// them, by hundreds of powers of two: parts are joined at the greater top.
TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionWhereScoresAreFarApart) {
  Sessions sessions(element(), data(), {2, 1, 64}, {600});
  for (int d = 0; d < 64; ++d) {
    sessions.Set(sessions.keys(), sessions.Place(0, 550, 0, d), 300.0f);
  }
  ExpectReference(sessions, {{0, 540, 30}});
}

TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionFromOneToSixteenRows) {
  const Sessions sessions(element(), data(), {4, 2, 48}, {280});
  for (int num_rows = 1; num_rows <= 16; ++num_rows) {
    ExpectReference(sessions, {{0, 280 - num_rows, num_rows}});
  }
}

TEST_P(CudaAttentionTest, AgreesWithDoublePrecisionForAPrompt) {
  const Sessions sessions(element(), data(), {2, 1, 64}, {300});
  ExpectReference(sessions, {{0, 0, 60}, {0, 230, 70}});
}

TEST_P(CudaAttentionTest, AWindowHidesAllButTheLastKeys) {
  for (const Heads& heads : {Heads{2, 2, 48}, {2, 2, 128}, {6, 2, 64}}) {
    for (const int window : {1, 2, 16, 37, 256, 300}) {
      const Sessions sessions(element(), data(), heads, {40, 540}, window);
      ExpectReference(sessions, {{0, 0, 40}, {1, 250, 12}, {1, 530, 9}});
    }
  }
}

TEST_P(CudaAttentionTest, ARowHasTheSameBitsWhateverStandsBesideIt) {
  for (const int window : {0, 21}) {
    const Sessions sessions(element(), data(), {5, 1, 64}, {300, 90, 17},
                            window);
    const std::vector<Segment> segments = {
        {0, 240, 60}, {1, 0, 9}, {2, 16, 1}, {1, 70, 20}};
    const auto together = sessions.Run(segments);
    size_t row = 0;
    for (const Segment& segment : segments) {
      for (int i = 0; i < segment.num_rows;) {
        const int count = std::min(1 + i % 17, segment.num_rows - i);
        const auto alone = sessions.Run(
            {{segment.session, segment.first_position + i, count}});
        EXPECT_EQ(
            std::memcmp(alone.data(), &together[row * sessions.row_size()],
                        alone.size() * sizeof(uint16_t)),
            0)
            << count << " rows of session " << segment.session << " from "
            << segment.first_position + i << ", window " << window;
        i += count;
        row += count;
      }
    }
  }
}

// Sessions end before, at and after a split, and have one tile or several; some
// are taken in launches of seven pairs.
TEST_P(CudaAttentionTest, ARowHasTheSameBitsHoweverPairsAreNumbered) {
  const std::vector<Segment> segments = {
      {0, 254, 1}, {1, 251, 5}, {2, 256, 1}, {3, 500, 13}, {4, 1290, 10}};
  for (const int window : {0, 270}) {
    const Sessions sessions(element(), data(), {4, 1, 64},
                            {255, 256, 257, 513, 1300}, window);
    const auto together = sessions.Run(segments);
    for (const Arrangement& other :
         {Arrangement{.most_beside = 1}, Arrangement{.most_beside = 2},
          Arrangement{.pairs_at_once = 7},
          Arrangement{.pairs_at_once = 7, .is_backward = true},
          Arrangement{.num_drawn = 3},
          Arrangement{.num_drawn = 600, .num_nobodys = 0},
          Arrangement{.num_nobodys = 31}, Arrangement{.num_nobodys = 250}}) {
      EXPECT_EQ(sessions.Run(segments, other), together)
          << other.most_beside << " beside, " << other.pairs_at_once
          << " at once, " << other.num_drawn << " drawn, " << other.num_nobodys
          << " of nobody, window " << window;
    }
  }
}

// A warp looks at 32 tiles at a time for that of a pair.
TEST_P(CudaAttentionTest, ARowHasTheSameBitsBesideAnyNumberOfTiles) {
  constexpr int kMost = 65;
  const Sessions sessions(element(), data(), {1, 1, 8},
                          std::vector<int>(kMost, 2));
  std::vector<Segment> segments;
  std::vector<uint16_t> alone;
  for (int i = 0; i < kMost; ++i) {
    segments.push_back({i, 1, 1});
    const auto row = sessions.Run({segments.back()});
    alone.insert(alone.end(), row.begin(), row.end());
    if (i + 1 < 31) continue;
    EXPECT_EQ(sessions.Run(segments, {.num_nobodys = 0}), alone) << i + 1;
  }
}

TEST_P(CudaAttentionTest, ARowHasTheSameBitsWhereverItsBlocksLie) {
  const Heads heads = {4, 2, 80};
  const Sessions here(element(), data(), heads, {270}, 0, 1);
  const Sessions there(element(), data(), heads, {270}, 0, 2);
  EXPECT_EQ(here.Run({{0, 250, 20}}), there.Run({{0, 250, 20}}));
}

TEST_P(CudaAttentionTest, ANanKeyReachesExactlyTheRowsThatSeeIt) {
  Sessions sessions(element(), data(), {2, 1, 64}, {80}, /*window=*/8);
  const auto clean = sessions.Run({{0, 60, 20}});
  sessions.Set(sessions.keys(), sessions.Place(0, 65, 0, 3), NAN);
  const auto bits = sessions.Run({{0, 60, 20}});
  const auto out = ValuesOf(element(), bits);
  for (size_t i = 0; i < out.size(); ++i) {
    const int position = 60 + static_cast<int>(i) / sessions.row_size();
    if (position >= 65 && position < 73) {
      ASSERT_TRUE(std::isnan(out[i])) << position;
    } else {
      ASSERT_EQ(bits[i], clean[i]) << position;
    }
  }
}

}  // namespace
}  // namespace outrider::kernels::cuda
