// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/ops.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

at::Tensor Noise(at::IntArrayRef sizes, uint64_t seed) {
  at::Tensor out = at::empty(sizes, at::kFloat);
  float* p = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    p[i] = static_cast<float>(seed >> 40) / (1 << 23) - 1.0f;
  }
  return out;
}

constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 8;

constexpr int kQueries = kHeads * kHeadDim;
constexpr int kColumns = kQueries + 2 * kKvHeads * kHeadDim;

constexpr int kNumBlocks = 12;

// A pass of three sessions, of which the one in the middle is looked at.
struct SomePass {
  static constexpr int kFirstRow = 2;

  SomePass(int num_rows, int first_position, int window, at::ScalarType dtype)
      : pass({.qkv = Noise({num_rows + 3, kColumns}, 1),
              .keys = Noise({kNumBlocks, kKvBlockLength, kKvHeads, kHeadDim}, 2)
                          .to(dtype),
              .values =
                  Noise({kNumBlocks, kKvBlockLength, kKvHeads, kHeadDim}, 3)
                      .to(dtype),
              .window = window}) {
    segments = {{&others[0], 0, 2},
                {table.data(), first_position, num_rows},
                {&others[1], 7, 1}};
    pass.segments = segments;
  }
  SomePass(const SomePass&) = delete;

  // The keys, or values, of the middle session: [positions, heads, head_dim].
  at::Tensor InOrder(const at::Tensor& blocks) const {
    return blocks
        .index_select(
            0, at::tensor(std::vector<int64_t>(table.begin(), table.end())))
        .flatten(0, 1);
  }
  at::Tensor Attended(const Ops& ops) const {
    at::Tensor attended = at::empty({pass.qkv.size(0), kQueries});
    ops.Attend(pass, attended);
    return attended;
  }

  const std::vector<KvBlockId> table = {4, 11, 2, 7, 0, 9, 6, 8};
  const KvBlockId others[2] = {3, 5};
  std::vector<kernels::KvSegment> segments;
  AttentionPass pass;
};

// The definition, in double.
double Expected(const SomePass& in, int row, int head, int element) {
  const int position = in.segments[1].first_position + row;
  const int window = in.pass.window;
  const int begin = window > 0 ? std::max(0, position + 1 - window) : 0;
  const int kv_head = head / (kHeads / kKvHeads);
  const at::Tensor keys = in.InOrder(in.pass.keys);
  const at::Tensor values = in.InOrder(in.pass.values);
  const auto q = in.pass.qkv.accessor<float, 2>();
  const auto k = keys.accessor<float, 3>();
  const auto v = values.accessor<float, 3>();
  double sum = 0.0;
  double mixed = 0.0;
  for (int j = begin; j <= position; ++j) {
    double dot = 0.0;
    for (int d = 0; d < kHeadDim; ++d) {
      dot += double{q[SomePass::kFirstRow + row][head * kHeadDim + d]} *
             k[j][kv_head][d];
    }
    const double weight = std::exp(dot / std::sqrt(double{kHeadDim}));
    sum += weight;
    mixed += weight * v[j][kv_head][element];
  }
  return mixed / sum;
}

class OpsTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Torch's pool spins, which costs seconds on a busy machine.
  void SetUp() override { at::set_num_threads(1); }

  const std::unique_ptr<const Ops> ops_ =
      GetParam() == std::string("aten") ? MakeAtenOps()
                                        : MakeCpuOps(kernels::BestLevel(), 2);
};

TEST_P(OpsTest, AttentionIsItsDefinitionWithAndWithoutAWindow) {
  for (const int window : {0, 1, 3, 100}) {
    const SomePass input(3, 30, window, at::kFloat);
    const at::Tensor out = input.Attended(*ops_);
    for (int row = 0; row < 3; ++row) {
      for (int head = 0; head < kHeads; ++head) {
        for (int d = 0; d < kHeadDim; ++d) {
          EXPECT_NEAR(out[SomePass::kFirstRow + row][head * kHeadDim + d]
                          .item<double>(),
                      Expected(input, row, head, d), 1e-6)
              << window;
        }
      }
    }
  }
}

TEST_P(OpsTest, KeysAndValuesAreStoredAtTheirPositionsAndNowhereElse) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    SomePass input(20, 30, 0, dtype);
    const auto expected = [&](const at::Tensor& blocks, int first_column) {
      at::Tensor stored = blocks.clone();
      int row = 0;
      for (const kernels::KvSegment& segment : input.segments) {
        for (int i = 0; i < segment.num_rows; ++i, ++row) {
          const int position = segment.first_position + i;
          stored[segment.blocks[position / kKvBlockLength]]
                [position % kKvBlockLength]
                    .copy_(input.pass.qkv[row]
                               .narrow(0, first_column, kKvHeads * kHeadDim)
                               .reshape({kKvHeads, kHeadDim}));
        }
      }
      return stored;
    };
    const at::Tensor keys = expected(input.pass.keys, kQueries);
    const at::Tensor values =
        expected(input.pass.values, kQueries + kKvHeads * kHeadDim);
    ops_->StoreKv(input.pass);
    EXPECT_TRUE(at::equal(input.pass.keys, keys));
    EXPECT_TRUE(at::equal(input.pass.values, values));
  }
}

// Rows that follow must not show: with a mask over extra keys they would.
TEST_P(OpsTest, AttentionOfARowIsBitEqualHoweverManyRowsStandBesideIt) {
  for (const int window : {0, 40}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const SomePass input(9, 108, window, dtype);
      const at::Tensor together = input.Attended(*ops_);
      for (int row = 0; row < 9; ++row) {
        const std::vector<kernels::KvSegment> alone = {
            {input.table.data(), 108 + row, 1}};
        AttentionPass pass = input.pass;
        pass.qkv = pass.qkv.narrow(0, SomePass::kFirstRow + row, 1);
        pass.segments = alone;
        at::Tensor attended = at::empty({1, kQueries});
        ops_->Attend(pass, attended);
        EXPECT_TRUE(at::equal(attended[0], together[SomePass::kFirstRow + row]))
            << row;
      }
    }
  }
}

TEST_P(OpsTest, LinearRunsBfloat16WeightsOnFloat32Activations) {
  // It has eight bits, as the kernels round it to those of the weights.
  const at::Tensor x = Noise({3, 16}, 1).to(at::kBFloat16).to(at::kFloat);
  const at::Tensor weight = Noise({5, 16}, 2).to(at::kBFloat16);
  const at::Tensor bias = Noise({5}, 3);
  const at::Tensor y =
      ops_->Linear({.matrix = ops_->Prepare({weight}), .bias = bias}, x);
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  const at::Tensor expected =
      (at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t()) + bias);
  EXPECT_LT((y - expected).abs().max().item<double>(), 1e-5);
}

TEST_P(OpsTest, AddLinearAddsToTheResidualWhatLinearGives) {
  const at::Tensor x = Noise({3, 16}, 1);
  const LinearWeights weights = {.matrix = ops_->Prepare({Noise({5, 16}, 2)}),
                                 .bias = Noise({5}, 3)};
  const at::Tensor residual = Noise({3, 5}, 4);
  at::Tensor sum = residual.clone();
  ops_->AddLinear(weights, x, sum);
  EXPECT_TRUE(at::equal(sum, residual + ops_->Linear(weights, x)));
}

TEST_P(OpsTest, RotationTurnsTheTwoHalvesOfTheFirstHeadsOfARow) {
  at::Tensor x =
      at::tensor({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f}).view({1, 8});
  const at::Tensor cosine = at::tensor({0.0f, 1.0f}).view({1, 2});
  const at::Tensor sine = at::tensor({1.0f, 0.0f}).view({1, 2});
  const at::Tensor expected =
      at::tensor({-3.0f, 2.0f, 1.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f});
  ops_->Rotate({cosine, sine}, 1, x);
  EXPECT_TRUE(at::equal(x.view({8}), expected));
}

TEST_P(OpsTest, SiluMulTakesTheGateFromTheFirstHalf) {
  const at::Tensor x = at::tensor({0.0f, 1.0f, 5.0f, 2.0f}).view({1, 4});
  const at::Tensor y = ops_->SiluMul(x);
  EXPECT_EQ(y[0][0].item<float>(), 0.0f);
  EXPECT_NEAR(y[0][1].item<float>(), 2.0f / (1.0f + std::exp(-1.0f)), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsTest, ::testing::Values("aten", "cpu"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace outrider
