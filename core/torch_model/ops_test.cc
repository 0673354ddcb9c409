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

// The rows of a session between those of two others.
AttentionRows SomeAttention(int num_rows, int first_position, int window) {
  const int capacity = first_position + num_rows + 3;
  return {.qkv = Noise({num_rows + 3, kColumns}, 1),
          .first_row = 2,
          .num_rows = num_rows,
          .keys = Noise({capacity, kKvHeads, kHeadDim}, 2),
          .values = Noise({capacity, kKvHeads, kHeadDim}, 3),
          .first_position = first_position,
          .window = window};
}

constexpr float kUntouched = 77.0f;

// One row for each of qkv's.
at::Tensor Attended(const Ops& ops, const AttentionRows& rows) {
  at::Tensor attended = at::full({rows.qkv.size(0), kQueries}, kUntouched);
  ops.Attend(rows, attended);
  return attended;
}

// The definition, in double.
double Expected(const AttentionRows& in, int row, int head, int element) {
  const int position = in.first_position + row;
  const int begin = in.window > 0 ? std::max(0, position + 1 - in.window) : 0;
  const int kv_head = head / (kHeads / kKvHeads);
  const auto q = in.qkv.accessor<float, 2>();
  const auto k = in.keys.accessor<float, 3>();
  const auto v = in.values.accessor<float, 3>();
  double sum = 0.0;
  double mixed = 0.0;
  for (int j = begin; j <= position; ++j) {
    double dot = 0.0;
    for (int d = 0; d < kHeadDim; ++d) {
      dot +=
          double{q[in.first_row + row][head * kHeadDim + d]} * k[j][kv_head][d];
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
      GetParam() == std::string("aten") ? MakeAtenOps() : MakeCpuOps();
};

TEST_P(OpsTest, AttentionIsItsDefinitionWithAndWithoutAWindow) {
  for (const int window : {0, 1, 3, 100}) {
    const AttentionRows input = SomeAttention(3, 5, window);
    const at::Tensor out = Attended(*ops_, input);
    for (int row = 0; row < 3; ++row) {
      for (int head = 0; head < kHeads; ++head) {
        for (int d = 0; d < kHeadDim; ++d) {
          EXPECT_NEAR(out[2 + row][head * kHeadDim + d].item<double>(),
                      Expected(input, row, head, d), 1e-6)
              << window;
        }
      }
    }
  }
}

TEST_P(OpsTest, AttentionLeavesTheRowsOfOtherSessionsAlone) {
  const at::Tensor out = Attended(*ops_, SomeAttention(3, 5, 0));
  for (const int row : {0, 1, 5}) {
    EXPECT_TRUE(at::all(out[row] == kUntouched).item<bool>()) << row;
  }
}

TEST_P(OpsTest, KeysAndValuesAreStoredAtTheirPositionsAndNowhereElse) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    AttentionRows input = SomeAttention(3, 5, 0);
    input.keys = input.keys.to(dtype);
    input.values = input.values.to(dtype);
    const int kv_size = kKvHeads * kHeadDim;
    const auto expected = [&](const at::Tensor& cache, int first_column) {
      at::Tensor rows = cache.clone();
      rows.narrow(0, 5, 3).copy_(input.qkv.narrow(0, 2, 3)
                                     .narrow(1, first_column, kv_size)
                                     .reshape({3, kKvHeads, kHeadDim}));
      return rows;
    };
    const at::Tensor keys = expected(input.keys, kQueries);
    const at::Tensor values = expected(input.values, kQueries + kv_size);
    ops_->StoreKv(input);
    EXPECT_TRUE(at::equal(input.keys, keys));
    EXPECT_TRUE(at::equal(input.values, values));
  }
}

// Rows that follow must not show: with a mask over extra keys they would.
TEST_P(OpsTest, AttentionOfARowIsBitEqualHoweverManyRowsFollow) {
  for (const int window : {0, 40}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      AttentionRows input = SomeAttention(9, 108, window);
      input.keys = input.keys.to(dtype);
      input.values = input.values.to(dtype);
      const at::Tensor together = Attended(*ops_, input);
      for (int row = 0; row < 9; ++row) {
        AttentionRows alone = input;
        alone.first_row = input.first_row + row;
        alone.num_rows = 1;
        alone.first_position = input.first_position + row;
        EXPECT_TRUE(at::equal(Attended(*ops_, alone)[alone.first_row],
                              together[alone.first_row]))
            << row;
      }
    }
  }
}

TEST_P(OpsTest, LinearRunsBfloat16WeightsOnFloat32Activations) {
  // Of eight bits, as the kernels round it to those of the weights.
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
