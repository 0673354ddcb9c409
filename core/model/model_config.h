// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_MODEL_CONFIG_H_
#define OUTRIDER_CORE_MODEL_MODEL_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/token.h"
#include "nlohmann/json_fwd.hpp"

namespace outrider {

// A context of more tokens is taken for a mistake.
inline constexpr int kMaxContextLength = 1 << 27;

// How the tensors are named and laid out.
enum class ModelLayout {
  kLlama,  // Llama, Mistral, Qwen2, Qwen3: q, k, v, gate, up as [out, in]
  kGpt2,   // c_attn, c_fc, c_proj as [in, out]
};

enum class NormKind { kRms, kLayer };
enum class PositionKind { kRotary, kLearned };
enum class FeedForwardKind { kSiluGated, kGelu };

// How rotary frequencies are stretched beyond the trained context.
struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3, kYarn };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  // Only kLlama3.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // Only kLlama3 and kYarn.
  double original_context_length = 0.0;
  // Only kYarn: pairs that turn at least so often in the original context are
  // kept, those that turn no more often than beta_slow are stretched.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool has_whole_bounds = true;  // these two, as numbers of pairs
  // Cosines and sines are multiplied by it: 1 but under kYarn.
  double magnitude = 1.0;
};

// What a decoder-only transformer looks like: config.json, validated, with the
// defaults of each family filled in. Families differ by these fields alone.
struct ModelConfig {
  std::string model_type = {};  // "llama", "mistral", "qwen2", "qwen3", "gpt2"
  ModelLayout layout = ModelLayout::kLlama;
  NormKind norm = NormKind::kRms;
  PositionKind positions = PositionKind::kRotary;
  FeedForwardKind feed_forward = FeedForwardKind::kSiluGated;

  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;  // divides num_heads
  int head_dim = 0;
  int context_length = 0;

  double norm_epsilon = 0.0;
  double rope_theta = 0.0;
  RopeScaling rope_scaling = {};

  bool has_qkv_bias = false;
  bool has_attention_output_bias = false;
  bool has_feed_forward_bias = false;
  bool has_qk_norm = false;  // RMS norm of each query and key head
  bool has_tied_head = false;

  // How many keys a row sees in each layer, its own included; 0 means all.
  std::vector<int> sliding_windows = {};
  // Those of config.json and generation_config.json, each once. The tokenizer
  // may have another.
  std::vector<TokenId> eos_ids = {};

  int query_size() const { return num_heads * head_dim; }
  int kv_size() const { return num_kv_heads * head_dim; }
};

// config.json as transformers 4 or 5 writes it; `what` starts every message.
// UNIMPLEMENTED with the name of what is not supported, INVALID_ARGUMENT where
// a value is missing or makes no sense.
absl::StatusOr<ModelConfig> ParseModelConfig(const nlohmann::json& config,
                                             const std::string& what);

// DIR/config.json, and the end-of-sequence ids of DIR/generation_config.json
// where there is one. NOT_FOUND without config.json.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& directory);

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_MODEL_CONFIG_H_
