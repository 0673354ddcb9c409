// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "core/kernels/random_values.h"
#include "core/kernels/test_variants.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

struct Shape {
  int num_heads = 6;
  int num_kv_heads = 2;
  int head_dim = 64;
  int window = 0;
};

// The blocks of a session with so many positions, in no order, among others.
std::vector<KvBlockId> ShuffledTable(int length, int salt) {
  const int num_blocks = NumKvBlocks(length);
  int step = 5;  // has no factor in common with the number of blocks
  while (std::gcd(step, 2 * num_blocks) > 1) step += 2;
  std::vector<KvBlockId> table;
  for (int i = 0; i < num_blocks; ++i) {
    table.push_back((i * step + salt) % (2 * num_blocks));
  }
  return table;
}

// Random keys and values of one session in blocks, and queries for each of its
// positions. Whatever it has not written is NaN.
struct Cache {
  Cache(const Shape& cache_shape, int cached_length, ElementType cache_type)
      : shape(cache_shape),
        length(cached_length),
        type(cache_type),
        table(ShuffledTable(length, 1)) {
    const size_t size = static_cast<size_t>(length) * kv_size();
    keys = RandomValues(size, 3);
    values = RandomValues(size, 5);
    for (float& key : keys) key *= 3.0f;  // softmax weights that differ
    Store();
    queries = RandomValues(static_cast<size_t>(length) * query_stride(), 7);
  }

  // Writes keys and values to the blocks of the table.
  void Store() {
    if (type == ElementType::kBFloat16) {
      keys = ToFloat(ToBFloat16(keys));
      values = ToFloat(ToBFloat16(values));
    }
    key_blocks = Scatter(keys);
    value_blocks = Scatter(values);
    rounded_keys = ToBFloat16(key_blocks);
    rounded_values = ToBFloat16(value_blocks);
  }
  std::vector<float> Scatter(const std::vector<float>& rows) const {
    const size_t block_size = static_cast<size_t>(kKvBlockLength) * kv_size();
    std::vector<float> blocks(2 * table.size() * block_size,
                              std::numeric_limits<float>::quiet_NaN());
    for (int i = 0; i < length; ++i) {
      std::copy_n(&rows[static_cast<size_t>(i) * kv_size()], kv_size(),
                  &blocks[table[i / kKvBlockLength] * block_size +
                          static_cast<size_t>(i % kKvBlockLength) * kv_size()]);
    }
    return blocks;
  }

  int kv_size() const { return shape.num_kv_heads * shape.head_dim; }
  int row_size() const { return shape.num_heads * shape.head_dim; }
  int query_stride() const { return row_size() + 5; }

  std::vector<float> Run(int first_position, int num_rows,
                         const Execution& execution) const {
    return Run({{table.data(), first_position, num_rows}}, execution);
  }
  // Segments of one pass, each with the queries of its positions.
  std::vector<float> Run(const std::vector<KvSegment>& segments,
                         const Execution& execution) const {
    std::vector<float> some;
    for (const KvSegment& segment : segments) {
      const auto first =
          queries.begin() +
          static_cast<ptrdiff_t>(segment.first_position) * query_stride();
      some.insert(some.end(), first,
                  first + ptrdiff_t{segment.num_rows} * query_stride());
    }
    std::vector<float> out(some.size() / query_stride() * row_size(), 77.0f);
    const bool bfloat16 = type == ElementType::kBFloat16;
    Attention({.segments = segments,
               .queries = some.data(),
               .query_stride = query_stride(),
               .keys = bfloat16 ? ConstElements(rounded_keys.data())
                                : ConstElements(key_blocks.data()),
               .values = bfloat16 ? ConstElements(rounded_values.data())
                                  : ConstElements(value_blocks.data()),
               .num_heads = shape.num_heads,
               .num_kv_heads = shape.num_kv_heads,
               .head_dim = shape.head_dim,
               .window = shape.window,
               .scale = 0.125f,
               .out = out.data()},
              execution);
    return out;
  }

  // The row at `position`, in double.
  std::vector<double> Reference(int position) const {
    const int dim = shape.head_dim;
    const int begin =
        shape.window > 0 ? std::max(0, position - shape.window + 1) : 0;
    std::vector<double> out(row_size(), 0.0);
    for (int head = 0; head < shape.num_heads; ++head) {
      const int kv_head = head / (shape.num_heads / shape.num_kv_heads);
      const float* query =
          &queries[static_cast<size_t>(position) * query_stride() + head * dim];
      auto at = [&](int j) {
        return (static_cast<size_t>(j) * shape.num_kv_heads + kv_head) * dim;
      };
      std::vector<double> scores;
      for (int j = begin; j <= position; ++j) {
        double dot = 0.0;
        for (int d = 0; d < dim; ++d) dot += double{query[d]} * keys[at(j) + d];
        scores.push_back(0.125 * dot);
      }
      const double top = *std::max_element(scores.begin(), scores.end());
      double total = 0.0;
      for (const double score : scores) total += std::exp(score - top);
      for (int j = begin; j <= position; ++j) {
        const double weight = std::exp(scores[j - begin] - top) / total;
        for (int d = 0; d < dim; ++d) {
          out[head * dim + d] += weight * values[at(j) + d];
        }
      }
    }
    return out;
  }

  Shape shape;
  int length;
  ElementType type;
  std::vector<KvBlockId> table;
  std::vector<float> keys, values;  // by position
  std::vector<float> queries;
  std::vector<float> key_blocks, value_blocks;
  std::vector<BFloat16> rounded_keys, rounded_values;
};

class AttentionTest : public ::testing::TestWithParam<Variant> {
 protected:
  void ExpectReference(const Cache& cache, int first_position, int num_rows) {
    const auto out = cache.Run(first_position, num_rows, GetParam().level);
    for (int m = 0; m < num_rows; ++m) {
      const auto expected = cache.Reference(first_position + m);
      for (int i = 0; i < cache.row_size(); ++i) {
        ASSERT_NEAR(out[m * cache.row_size() + i], expected[i], 4e-6)
            << "element " << i << " of position " << first_position + m;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(AllLevels, AttentionTest,
                         ::testing::ValuesIn(AllVariants()), VariantName);

TEST_P(AttentionTest, AgreesWithDoublePrecisionFromAnEmptyCache) {
  ExpectReference(Cache({}, 40, GetParam().type), 0, 40);
}

TEST_P(AttentionTest, AgreesWithDoublePrecisionDeepInALongContext) {
  ExpectReference(Cache({}, 1000, GetParam().type), 995, 5);
}

TEST_P(AttentionTest, AgreesWithDoublePrecisionForAnyHeadGrouping) {
  for (const int num_heads : {1, 2, 4, 5, 7}) {
    for (const int num_kv_heads : {1, num_heads}) {
      const Shape shape = {
          .num_heads = num_heads, .num_kv_heads = num_kv_heads, .head_dim = 16};
      ExpectReference(Cache(shape, 70, GetParam().type), 60, 10);
    }
  }
}

TEST_P(AttentionTest, AgreesWithDoublePrecisionForHeadsOfAnySize) {
  for (const int head_dim : {1, 3, 8, 20, 31, 80, 100}) {
    const Shape shape = {
        .num_heads = 4, .num_kv_heads = 2, .head_dim = head_dim};
    ExpectReference(Cache(shape, 50, GetParam().type), 47, 3);
  }
}

TEST_P(AttentionTest, AWindowHidesAllButTheLastKeys) {
  for (const int window : {1, 2, 16, 37, 300}) {
    const Shape shape = {
        .num_heads = 4, .num_kv_heads = 2, .head_dim = 24, .window = window};
    ExpectReference(Cache(shape, 150, GetParam().type), 0, 20);
    ExpectReference(Cache(shape, 150, GetParam().type), 130, 20);
  }
}

TEST_P(AttentionTest, ARowHasTheSameBitsWhateverStandsBesideIt) {
  for (const int window : {0, 21}) {
    const Shape shape = {
        .num_heads = 6, .num_kv_heads = 2, .head_dim = 20, .window = window};
    const Cache cache(shape, 180, GetParam().type);
    std::vector<float> alone;
    for (int position = 0; position < 180; ++position) {
      const auto row = cache.Run(position, 1, GetParam().level);
      alone.insert(alone.end(), row.begin(), row.end());
    }
    std::vector<int> counts = {64, 100};
    for (int count = 2; count <= 17; ++count) counts.push_back(count);
    for (const int count : counts) {
      for (const int first : {0, 60, 80}) {
        const auto out = cache.Run(first, count, GetParam().level);
        EXPECT_EQ(std::memcmp(out.data(), &alone[first * cache.row_size()],
                              out.size() * sizeof(float)),
                  0)
            << count << " rows from " << first << ", window " << window;
      }
    }
  }
}

// All blocks elsewhere, in another order.
TEST_P(AttentionTest, ARowHasTheSameBitsWhereverItsBlocksLie) {
  for (const int window : {0, 21}) {
    Cache cache({.head_dim = 20, .window = window}, 180, GetParam().type);
    const auto expected = cache.Run(100, 80, GetParam().level);
    std::iota(cache.table.begin(), cache.table.end(), 0);
    cache.Store();
    const auto in_order = cache.Run(100, 80, GetParam().level);
    EXPECT_EQ(std::memcmp(in_order.data(), expected.data(),
                          expected.size() * sizeof(float)),
              0);
  }
}

// Rows of several sessions, some long and some short: they share the blocks of
// a prefix, and the last one has blocks of its own after it.
TEST_P(AttentionTest, ARowHasTheSameBitsWhateverSessionsStandBesideIt) {
  for (const int window : {0, 21}) {
    const Cache cache({.head_dim = 20, .window = window}, 180, GetParam().type);
    const KvBlockId* table = cache.table.data();
    const std::vector<KvBlockId> prefix(table, table + 3);
    const std::vector<KvSegment> segments = {
        {table, 170, 1}, {prefix.data(), 40, 8},  {prefix.data(), 0, 1},
        {table, 60, 37}, {prefix.data(), 15, 17}, {table, 179, 1},
    };
    const auto together = cache.Run(segments, GetParam().level);
    const float* row = together.data();
    for (const KvSegment& segment : segments) {
      const auto alone = cache.Run({segment}, GetParam().level);
      EXPECT_EQ(std::memcmp(row, alone.data(), alone.size() * sizeof(float)), 0)
          << segment.first_position;
      row += alone.size();
    }
    EXPECT_EQ(row, together.data() + together.size());
  }
}

TEST_P(AttentionTest, ARowHasTheSameBitsWhateverTheNumberOfThreads) {
  const Cache cache({}, 300, GetParam().type);
  const KvBlockId* table = cache.table.data();
  const std::vector<KvSegment> segments = {
      {table, 299, 1}, {table, 0, 40}, {table, 250, 9}, {table, 200, 1}};
  const auto alone = cache.Run(segments, GetParam().level);
  for (const int num_threads : {2, 3, 7}) {
    ThreadPool pool(num_threads);
    const auto together = cache.Run(segments, {GetParam().level, &pool});
    EXPECT_EQ(std::memcmp(together.data(), alone.data(),
                          alone.size() * sizeof(float)),
              0)
        << num_threads << " threads";
  }
}

TEST_P(AttentionTest, ANanAfterARowsOwnKeysDoesNotReachIt) {
  Cache cache({}, 70, GetParam().type);
  const auto clean = cache.Run(60, 10, GetParam().level);
  const size_t stride = 2 * 64;
  std::fill_n(&cache.keys[65 * stride], stride,
              std::numeric_limits<float>::quiet_NaN());
  std::fill_n(&cache.values[65 * stride], stride,
              std::numeric_limits<float>::quiet_NaN());
  cache.Store();
  const auto out = cache.Run(60, 10, GetParam().level);
  const size_t row_size = cache.row_size();
  EXPECT_EQ(std::memcmp(out.data(), clean.data(), 5 * row_size * 4), 0);
  for (size_t i = 5 * row_size; i < out.size(); ++i) {
    ASSERT_TRUE(std::isnan(out[i])) << i;
  }
}

TEST_P(AttentionTest, ANanOfAnEarlierCallIsNotFoundInTheScratchMemory) {
  const Shape wide = {.num_heads = 2, .num_kv_heads = 1, .head_dim = 32};
  Cache poisoned(wide, 70, GetParam().type);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill(poisoned.keys.begin(), poisoned.keys.end(), nan);
  std::fill(poisoned.values.begin(), poisoned.values.end(), nan);
  poisoned.Store();
  poisoned.Run(60, 10, GetParam().level);
  // 17 of 32 padded elements, and fewer keys than a tile or a vector has.
  const Shape narrow = {.num_heads = 2, .num_kv_heads = 1, .head_dim = 17};
  ExpectReference(Cache(narrow, 70, GetParam().type), 0, 5);
}

TEST_P(AttentionTest, HugeScoresDoNotOverflow) {
  Cache cache({.num_heads = 2, .num_kv_heads = 1, .head_dim = 16}, 30,
              GetParam().type);
  for (float& query : cache.queries) query *= 1000.0f;
  for (const float x : cache.Run(20, 10, GetParam().level)) {
    ASSERT_LE(std::abs(x), 1.0f);
  }
}

TEST(StoreKvTest, RowsOfAFusedBufferLandInTheirSessionsBlocks) {
  constexpr int kSize = 19;
  constexpr int kNumBlocks = 6;
  const auto from = RandomValues(23 * 50, 9);
  const std::vector<KvBlockId> first = {4, 1};
  const std::vector<KvBlockId> second = {0, 5, 2};
  for (const Level level : SupportedLevels()) {
    std::vector<float> to(kNumBlocks * kKvBlockLength * kSize, 77.0f);
    std::vector<float> expected = to;
    StoreKv({.segments = {{first.data(), 14, 3}, {second.data(), 13, 20}},
             .from = from.data() + 11,
             .from_stride = 50,
             .row_size = kSize,
             .to = to.data()},
            level);
    const auto expect = [&](int row, KvBlockId block, int place) {
      std::copy_n(&from[row * 50 + 11], kSize,
                  &expected[(block * kKvBlockLength + place) * kSize]);
    };
    for (int i = 0; i < 3; ++i) {
      expect(i, first[(14 + i) / kKvBlockLength], (14 + i) % kKvBlockLength);
    }
    for (int i = 0; i < 20; ++i) {
      expect(3 + i, second[(13 + i) / kKvBlockLength],
             (13 + i) % kKvBlockLength);
    }
    EXPECT_EQ(to, expected);
  }
}

}  // namespace
}  // namespace outrider::kernels
