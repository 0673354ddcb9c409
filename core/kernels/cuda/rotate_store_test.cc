// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/rotate_store.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/cuda/kernel_test.h"
#include "core/kernels/norm.h"
#include "core/kernels/rope.h"

namespace outrider::kernels::cuda {
namespace {

constexpr int kContext = 50;
// Large, as it would hide among the roundings otherwise.
constexpr float kNormEpsilon = 0.25f;

// Rows of several sessions, of which a pass has the first ones. Blocks between
// theirs are nobody's.
const std::vector<int> kPositions = {16, 17, 47, 0,  31, 32, 5,  48,
                                     1,  2,  3,  18, 49, 15, 33, 30};
const std::vector<int> kBlocks = {3, 3, 5, 1, 3,  7, 9, 11,
                                  1, 1, 1, 3, 11, 8, 7, 3};
constexpr int kNumBlocks = 13;

struct Options {
  bool is_turned = true;
  bool has_norm = false;
  size_t num_rows = 4;
  uint32_t data = 0;
};

class Pass {
 public:
  Pass(Element element, const Heads& heads, const Options& options)
      : qkv(RandomValues(options.num_rows * RowSize(heads), options.data + 3)),
        element_(element),
        heads_(heads),
        options_(options),
        query_norm_(RandomValues(heads.head_dim, options.data + 5)),
        key_norm_(RandomValues(heads.head_dim, options.data + 7)) {
    for (int i = 0; i < kContext * heads.head_dim / 2; ++i) {
      cos_.push_back(std::cos(0.37f * static_cast<float>(i)));
      sin_.push_back(std::sin(0.37f * static_cast<float>(i)));
    }
  }

  static int RowSize(const Heads& heads) {
    return (heads.num_heads + 2 * heads.num_kv_heads) * heads.head_dim;
  }

  // Normalised and turned by the CPU's kernels; the values as they are.
  std::vector<float> OnCpu() const {
    std::vector<float> rows = qkv;
    const int row_size = RowSize(heads_), dim = heads_.head_dim;
    for (size_t row = 0; row < options_.num_rows; ++row) {
      for (int head = 0; head < heads_.num_heads + heads_.num_kv_heads;
           ++head) {
        float* x = &rows[row * row_size + head * dim];
        const auto& norm = head < heads_.num_heads ? query_norm_ : key_norm_;
        if (options_.has_norm) {
          kernels::RmsNorm({.x = x,
                            .weight = norm.data(),
                            .num_rows = 1,
                            .size = dim,
                            .epsilon = kNormEpsilon,
                            .y = x},
                           Level::kPortable);
        }
        if (!options_.is_turned) continue;
        kernels::ApplyRope({.x = x,
                            .row_stride = row_size,
                            .num_rows = 1,
                            .num_heads = 1,
                            .head_dim = dim,
                            .first_position = kPositions[row],
                            .cos = cos_.data(),
                            .sin = sin_.data()},
                           Level::kPortable);
      }
    }
    return rows;
  }

  void Run() {
    const DeviceArray<float> rows(qkv), query_norm(query_norm_),
        key_norm(key_norm_), cos(cos_), sin(sin_);
    const DeviceArray<int> positions(kPositions), blocks(kBlocks);
    const size_t kv_size = size_t{kNumBlocks} * kBlockLength *
                           heads_.num_kv_heads * heads_.head_dim;
    const DeviceArray<uint16_t> queries(options_.num_rows * heads_.num_heads *
                                        heads_.head_dim),
        keys(kv_size), values(kv_size);
    const bool has_norm = options_.has_norm, is_turned = options_.is_turned;
    RotateStore({.element = element_,
                 .heads = heads_,
                 .qkv = rows.data(),
                 .num_rows = static_cast<int>(options_.num_rows),
                 .positions = positions.data(),
                 .blocks = blocks.data(),
                 .query_norm = has_norm ? query_norm.data() : nullptr,
                 .key_norm = has_norm ? key_norm.data() : nullptr,
                 .epsilon = kNormEpsilon,
                 .cos = is_turned ? cos.data() : nullptr,
                 .sin = is_turned ? sin.data() : nullptr,
                 .queries = queries.data(),
                 .kv = {keys.data(), values.data()}},
                nullptr);
    got_queries = queries.Read();
    got_keys = keys.Read();
    got_values = values.Read();
  }

  size_t KvPlace(size_t row, int head, int d) const {
    return ((size_t(kBlocks[row]) * heads_.num_kv_heads + head) * kBlockLength +
            kPositions[row] % kBlockLength) *
               heads_.head_dim +
           d;
  }

  std::vector<float> qkv;
  std::vector<uint16_t> got_queries, got_keys, got_values;

 private:
  Element element_;
  Heads heads_;
  Options options_;
  std::vector<float> query_norm_, key_norm_, cos_, sin_;
};

class CudaRotateStoreTest : public KernelTest {
 protected:
  void ExpectCpu(const Heads& heads, Options options) {
    options.data = data();
    Pass pass(element(), heads, options);
    pass.Run();
    const auto expected = pass.OnCpu();
    const int dim = heads.head_dim;
    size_t num_written = 0;
    const auto expect = [&](const std::vector<uint16_t>& got, size_t place,
                            float x) {
      ASSERT_NEAR(ValueOf(element(), got[place]), x,
                  1.01f * unit() * std::abs(x) + 2e-6f)
          << place;
      ++num_written;
    };
    for (size_t row = 0; row < options.num_rows; ++row) {
      const float* x = &expected[row * Pass::RowSize(heads)];
      for (int i = 0; i < heads.num_heads * dim; ++i) {
        expect(pass.got_queries, row * heads.num_heads * dim + i, *x++);
      }
      for (const auto* got : {&pass.got_keys, &pass.got_values}) {
        for (int i = 0; i < heads.num_kv_heads * dim; ++i) {
          expect(*got, pass.KvPlace(row, i / dim, i % dim), *x++);
        }
      }
    }
    // Nothing else was.
    size_t num_nan = 0;
    for (const auto* got : {&pass.got_keys, &pass.got_values}) {
      for (const uint16_t bits : *got) num_nan += bits == 0xFFFF;
    }
    EXPECT_EQ(
        pass.got_queries.size() + pass.got_keys.size() + pass.got_values.size(),
        num_written + num_nan);
  }
};
OUTRIDER_INSTANTIATE_KERNEL_TEST(CudaRotateStoreTest);

TEST_P(CudaRotateStoreTest, AgreesWithTheCpuForHeadsOfAnySize) {
  for (int head_dim = 8; head_dim <= 128; head_dim += 8) {
    ExpectCpu({3, 1, head_dim}, {});
  }
}

TEST_P(CudaRotateStoreTest, AgreesWithTheCpuForAnyGrouping) {
  for (const int group : {1, 2, 3, 4, 5, 7, 8}) {
    for (const int num_kv_heads : {1, 2, 3}) {
      ExpectCpu({group * num_kv_heads, num_kv_heads, 64}, {});
    }
  }
}

TEST_P(CudaRotateStoreTest, AgreesWithTheCpuFromOneToSixteenRows) {
  for (size_t num_rows = 1; num_rows <= 16; ++num_rows) {
    ExpectCpu({5, 1, 48}, {.num_rows = num_rows});
  }
}

TEST_P(CudaRotateStoreTest, HeadsAreNormalisedBeforeTheyAreTurned) {
  ExpectCpu({4, 2, 128}, {.has_norm = true});
  ExpectCpu({2, 1, 72}, {.has_norm = true});
}

TEST_P(CudaRotateStoreTest, WithoutAnglesNothingIsTurned) {
  ExpectCpu({4, 4, 64}, {.is_turned = false});
}

TEST_P(CudaRotateStoreTest, AValueThatIsNotFiniteMakesItsKeyNan) {
  const Heads heads = {2, 2, 64};
  Pass pass(element(), heads, {.data = data()});
  // It is the value of row 1, head 1.
  const size_t value = Pass::RowSize(heads) + size_t{2 + 2 + 1} * 64;
  pass.qkv[value + 5] = std::numeric_limits<float>::infinity();
  pass.qkv[value + 40] = -1e38f;  // infinite as float16 alone
  pass.Run();
  for (int d = 0; d < 64; ++d) {
    EXPECT_TRUE(
        std::isnan(ValueOf(element(), pass.got_keys[pass.KvPlace(1, 1, d)])));
    EXPECT_TRUE(std::isfinite(
        ValueOf(element(), pass.got_values[pass.KvPlace(1, 1, d)])));
    EXPECT_TRUE(std::isfinite(
        ValueOf(element(), pass.got_keys[pass.KvPlace(1, 0, d)])));
  }
  EXPECT_EQ(pass.got_values[pass.KvPlace(1, 1, 5)], 0);
  EXPECT_EQ(pass.got_values[pass.KvPlace(1, 1, 40)] == 0,
            element() == Element::kFloat16);
}

}  // namespace
}  // namespace outrider::kernels::cuda
