// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_SMALL_MODEL_H_
#define OUTRIDER_CORE_CUDA_MODEL_SMALL_MODEL_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda_model/cuda_causal_lm.h"
#include "core/cuda_model/weights.h"
#include "core/kernels/cuda/device_array.h"
#include "core/kernels/random_values.h"
#include "gtest/gtest.h"

// What the tests of this folder run: a model with random weights on the device
// whose kernels are linked, emulated or a GPU.
namespace outrider {

inline ModelConfig SmallConfig() {
  ModelConfig config;
  config.vocab_size = 50;
  config.hidden_size = 32;
  config.intermediate_size = 40;
  config.num_layers = 2;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  config.context_length = 700;
  config.norm_epsilon = 1e-5;
  config.rope_theta = 10000.0;
  config.sliding_windows = {0, 100};
  return config;
}

class SmallWeights {
 public:
  explicit SmallWeights(WeightUploader& uploader) : uploader_(uploader) {}

  kernels::cuda::PackedMatrix Matrix(int out, int in, bool is_gated = false) {
    std::vector<float> values = RandomValues(size_t(out) * in);
    for (float& value : values) value *= 0.4f;
    const auto rounded =
        kernels::cuda::Round(kernels::cuda::Element::kBFloat16, values);
    const WeightUploader::Rows rows = {rounded.bits.data(), out, in};
    const auto matrix =
        is_gated ? uploader_.GateAndUp(rows) : uploader_.Matrix(rows);
    EXPECT_TRUE(matrix.ok()) << matrix.status();
    return matrix.value_or(kernels::cuda::PackedMatrix());
  }
  CudaNorm Norm(int size) {
    const auto weight = uploader_.Floats(RandomValues(size));
    EXPECT_TRUE(weight.ok()) << weight.status();
    return {.weight = weight.value_or(nullptr)};
  }

 private:
  std::vector<float> RandomValues(size_t count) {
    return kernels::RandomValues(count, ++seed_);
  }

  WeightUploader& uploader_;
  unsigned seed_ = 0;
};

inline CudaWeights MakeSmallWeights(std::shared_ptr<Gpu> gpu) {
  const ModelConfig config = SmallConfig();
  auto uploader = WeightUploader::Make(std::move(gpu),
                                       kernels::cuda::Element::kBFloat16, 4096);
  EXPECT_TRUE(uploader.ok()) << uploader.status();
  SmallWeights make(*uploader);
  const int hidden = config.hidden_size, inner = config.intermediate_size;
  const int queries = config.query_size();
  CudaWeights weights;
  weights.token_embedding = make.Matrix(config.vocab_size, hidden);
  for (int i = 0; i < config.num_layers; ++i) {
    weights.layers.push_back(
        {.attention_norm = make.Norm(hidden),
         .qkv = {make.Matrix(queries + 2 * config.kv_size(), hidden)},
         .output = {make.Matrix(hidden, queries)},
         .feed_forward_norm = make.Norm(hidden),
         .up = {make.Matrix(2 * inner, hidden, /*is_gated=*/true)},
         .down = {make.Matrix(hidden, inner)}});
  }
  weights.final_norm = make.Norm(hidden);
  weights.head = {make.Matrix(config.vocab_size, hidden)};
  weights.memory = uploader->TakeMemory();
  return weights;
}

inline std::shared_ptr<Gpu> GpuUnderTest() {
  std::string error;
  std::shared_ptr<Gpu> gpu(kernels::cuda::OpenGpu(0, &error));
  EXPECT_EQ(error, "");
  return gpu;
}

// Graphs have the time that they need, however slow the machine is.
inline constexpr std::chrono::hours kTimeForGraphs{1};

// It has no KV blocks yet.
inline absl::StatusOr<std::unique_ptr<CausalLm>> MakeSmallModel(
    const CudaLimits& limits = {.capture_time = {}},
    const std::shared_ptr<Gpu>& gpu = GpuUnderTest()) {
  const ModelConfig config = SmallConfig();
  ModelInfo info;
  info.device = "cuda:0";
  info.vocab_size = config.vocab_size;
  info.context_length = config.context_length;
  return MakeCudaCausalLm(gpu, std::move(info), config, MakeSmallWeights(gpu),
                          limits);
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_SMALL_MODEL_H_
