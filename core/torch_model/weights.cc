// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/weights.h"

#include <ATen/ATen.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/freed_memory.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/model/model_arithmetic.h"
#include "core/torch_model/weight_plan.h"

namespace outrider {
namespace {

// One matrix of the checkpoint that becomes some rows of a fused weight.
struct Block {
  std::string name = {};
  int64_t num_rows = 0;
};

// Allocates tensors and plans what fills them.
class WeightBuilder {
 public:
  WeightBuilder(const ModelConfig& config, const WeightOptions& options)
      : config_(config), options_(options) {}

  WeightPlan& plan() { return plan_; }

  // [rows, hidden_size]
  Matrix Table(const std::string& name, int64_t rows) {
    const at::Tensor table = Empty({rows, config_.hidden_size}, options_.dtype);
    plan_.Fill(absl::StrCat(name, ".weight"), table);
    return {.tensor = table};
  }

  NormWeights Norm(const std::string& name, int64_t size) {
    NormWeights norm;
    norm.weight = Empty({size}, at::kFloat);
    plan_.Fill(absl::StrCat(name, ".weight"), norm.weight);
    if (config_.norm == NormKind::kLayer) {
      norm.bias = Empty({size}, at::kFloat);
      plan_.Fill(absl::StrCat(name, ".bias"), norm.bias);
    }
    return norm;
  }

  // Blocks one below the other: [sum of num_rows, in].
  LinearWeights Linear(const std::vector<Block>& blocks, int64_t in,
                       bool has_bias) {
    int64_t out = 0;
    for (const Block& block : blocks) out += block.num_rows;
    LinearWeights linear = EmptyLinear(out, in, has_bias);
    int64_t row = 0;
    for (const Block& block : blocks) {
      plan_.Fill(absl::StrCat(block.name, ".weight"),
                 linear.matrix.tensor.narrow(0, row, block.num_rows));
      if (has_bias) {
        plan_.Fill(absl::StrCat(block.name, ".bias"),
                   linear.bias.narrow(0, row, block.num_rows));
      }
      row += block.num_rows;
    }
    return linear;
  }

  // GPT-2's "Conv1D": stored as [in, out], always with a bias.
  LinearWeights Conv1d(const std::string& name, int64_t out, int64_t in) {
    LinearWeights linear = EmptyLinear(out, in, /*has_bias=*/true);
    plan_.FillTransposed(absl::StrCat(name, ".weight"), linear.matrix.tensor);
    plan_.Fill(absl::StrCat(name, ".bias"), linear.bias);
    return linear;
  }

  // The output head: a matrix of its own, or the embedding again.
  LinearWeights Head(const std::string& embedding_name,
                     const Matrix& embedding) {
    if (!config_.has_tied_head) {
      return Linear({{"lm_head", config_.vocab_size}}, config_.hidden_size,
                    /*has_bias=*/false);
    }
    plan_.AllowCopy("lm_head.weight", absl::StrCat(embedding_name, ".weight"));
    return {.matrix = embedding};
  }

 private:
  at::Tensor Empty(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return at::empty(sizes, at::dtype(dtype).device(options_.device));
  }
  LinearWeights EmptyLinear(int64_t out, int64_t in, bool has_bias) const {
    LinearWeights linear;
    linear.matrix.tensor = Empty({out, in}, options_.dtype);
    if (has_bias) {
      linear.bias = Empty({out}, at::kFloat);
    }
    return linear;
  }

  const ModelConfig& config_;
  const WeightOptions& options_;
  WeightPlan plan_;
};

LayerWeights PlanLlamaLayer(const ModelConfig& config, const std::string& name,
                            WeightBuilder& builder) {
  const std::string attention = absl::StrCat(name, ".self_attn");
  const std::string mlp = absl::StrCat(name, ".mlp");
  LayerWeights layer;
  layer.attention_norm =
      builder.Norm(absl::StrCat(name, ".input_layernorm"), config.hidden_size);
  layer.attention.qkv =
      builder.Linear({{absl::StrCat(attention, ".q_proj"), config.query_size()},
                      {absl::StrCat(attention, ".k_proj"), config.kv_size()},
                      {absl::StrCat(attention, ".v_proj"), config.kv_size()}},
                     config.hidden_size, config.has_qkv_bias);
  if (config.has_qk_norm) {
    layer.attention.query_norm =
        builder.Norm(absl::StrCat(attention, ".q_norm"), config.head_dim);
    layer.attention.key_norm =
        builder.Norm(absl::StrCat(attention, ".k_norm"), config.head_dim);
  }
  layer.attention.output =
      builder.Linear({{absl::StrCat(attention, ".o_proj"), config.hidden_size}},
                     config.query_size(), config.has_attention_output_bias);
  layer.feed_forward_norm = builder.Norm(
      absl::StrCat(name, ".post_attention_layernorm"), config.hidden_size);
  layer.feed_forward.up = builder.Linear(
      {{absl::StrCat(mlp, ".gate_proj"), config.intermediate_size},
       {absl::StrCat(mlp, ".up_proj"), config.intermediate_size}},
      config.hidden_size, config.has_feed_forward_bias);
  layer.feed_forward.down =
      builder.Linear({{absl::StrCat(mlp, ".down_proj"), config.hidden_size}},
                     config.intermediate_size, config.has_feed_forward_bias);
  // A buffer that early checkpoints carry; computed here.
  builder.plan().Allow(absl::StrCat(attention, ".rotary_emb.inv_freq"));
  return layer;
}

ModelWeights PlanLlama(const ModelConfig& config, WeightBuilder& builder) {
  ModelWeights weights;
  weights.token_embedding =
      builder.Table("model.embed_tokens", config.vocab_size);
  for (int i = 0; i < config.num_layers; ++i) {
    weights.layers.push_back(
        PlanLlamaLayer(config, absl::StrCat("model.layers.", i), builder));
  }
  weights.final_norm = builder.Norm("model.norm", config.hidden_size);
  weights.head = builder.Head("model.embed_tokens", weights.token_embedding);
  return weights;
}

LayerWeights PlanGpt2Layer(const ModelConfig& config, const std::string& name,
                           WeightBuilder& builder) {
  const int64_t hidden = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  LayerWeights layer;
  layer.attention_norm = builder.Norm(absl::StrCat(name, ".ln_1"), hidden);
  layer.attention.qkv =
      builder.Conv1d(absl::StrCat(name, ".attn.c_attn"), 3 * hidden, hidden);
  layer.attention.output =
      builder.Conv1d(absl::StrCat(name, ".attn.c_proj"), hidden, hidden);
  layer.feed_forward_norm = builder.Norm(absl::StrCat(name, ".ln_2"), hidden);
  layer.feed_forward.up =
      builder.Conv1d(absl::StrCat(name, ".mlp.c_fc"), inner, hidden);
  layer.feed_forward.down =
      builder.Conv1d(absl::StrCat(name, ".mlp.c_proj"), hidden, inner);
  // The causal mask, which old checkpoints carry as buffers.
  builder.plan().Allow(absl::StrCat(name, ".attn.bias"));
  builder.plan().Allow(absl::StrCat(name, ".attn.masked_bias"));
  return layer;
}

// `prefix` is "transformer." or, where only the body was saved, empty.
ModelWeights PlanGpt2(const ModelConfig& config, const std::string& prefix,
                      WeightBuilder& builder) {
  ModelWeights weights;
  const std::string embedding = absl::StrCat(prefix, "wte");
  weights.token_embedding = builder.Table(embedding, config.vocab_size);
  weights.position_embedding =
      builder.Table(absl::StrCat(prefix, "wpe"), config.context_length);
  for (int i = 0; i < config.num_layers; ++i) {
    weights.layers.push_back(
        PlanGpt2Layer(config, absl::StrCat(prefix, "h.", i), builder));
  }
  weights.final_norm =
      builder.Norm(absl::StrCat(prefix, "ln_f"), config.hidden_size);
  weights.head = builder.Head(embedding, weights.token_embedding);
  return weights;
}

// One matrix after the other. Those that are not mapped by themselves leave
// holes in a heap, which would stay as large as the model: so each layer's go
// back to the system, and at most one layer, or one table, is there twice.
void Prepare(const ModelConfig& config, const Ops& ops, ModelWeights& weights) {
  const auto prepare = [&ops](Matrix& matrix) {
    matrix = ops.Prepare(std::move(matrix));
  };
  // A tied head has only one copy.
  weights.head.matrix = config.has_tied_head ? Matrix() : weights.head.matrix;
  prepare(weights.token_embedding);
  prepare(weights.position_embedding);
  ReturnFreedMemory();
  for (LayerWeights& layer : weights.layers) {
    prepare(layer.attention.qkv.matrix);
    prepare(layer.attention.output.matrix);
    prepare(layer.feed_forward.up.matrix);
    prepare(layer.feed_forward.down.matrix);
    ReturnFreedMemory();
  }
  if (config.has_tied_head) {
    weights.head.matrix = weights.token_embedding;
  } else {
    prepare(weights.head.matrix);
  }
  ReturnFreedMemory();
}

// A model's tensors, and the plan that fills them.
struct PlannedModel {
  ModelWeights weights = {};
  WeightPlan plan = {};
};

PlannedModel PlanModel(const ModelConfig& config, const Checkpoint& checkpoint,
                       const WeightOptions& options) {
  WeightBuilder builder(config, options);
  PlannedModel planned;
  switch (config.layout) {
    case ModelLayout::kLlama:
      planned.weights = PlanLlama(config, builder);
      break;
    case ModelLayout::kGpt2: {
      const bool has_prefix =
          checkpoint.tensors().contains("transformer.wte.weight");
      planned.weights =
          PlanGpt2(config, has_prefix ? "transformer." : "", builder);
      break;
    }
  }
  planned.plan = std::move(builder.plan());
  return planned;
}

absl::StatusOr<ModelWeights> ReadWeights(const ModelConfig& config,
                                         const Checkpoint& checkpoint,
                                         const WeightOptions& options) {
  PlannedModel planned = PlanModel(config, checkpoint, options);
  OUTRIDER_ASSIGN_OR_RETURN(const std::string tensors,
                            planned.plan.Run(checkpoint));
  Sha256 hash;
  hash.Update(absl::StrCat(DescribeArithmetic(config), "\n", tensors, "\n"));
  planned.weights.hash = hash.HexDigest();
  return std::move(planned.weights);
}

}  // namespace

int64_t WeightBytes(const Checkpoint& checkpoint, at::ScalarType dtype) {
  int64_t bytes = 0;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    bytes += c10::multiply_integers(entry.shape) *
             static_cast<int64_t>(c10::elementSize(dtype));
  }
  return bytes;
}

absl::Status CheckWeights(const ModelConfig& config,
                          const Checkpoint& checkpoint) {
  // This device has shapes but no memory: a wrong config.json must not ask for
  // terabytes.
  return PlanModel(config, checkpoint, {.device = at::kMeta})
      .plan.Check(checkpoint);
}

absl::StatusOr<ModelWeights> LoadWeights(const ModelConfig& config,
                                         const Checkpoint& checkpoint,
                                         const Ops& ops,
                                         const WeightOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(CheckWeights(config, checkpoint));
  // The plan, which holds every tensor too, is gone before they are prepared.
  OUTRIDER_ASSIGN_OR_RETURN(ModelWeights weights,
                            ReadWeights(config, checkpoint, options));
  Prepare(config, ops, weights);
  return weights;
}

}  // namespace outrider
