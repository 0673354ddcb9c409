// SPDX-License-Identifier: Apache-2.0
#include "core/model/model_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/json/strict_json.h"
#include "core/model/config_fields.h"
#include "core/model/read_rope.h"

namespace outrider {
namespace {

using nlohmann::json;

// Far above any model, far below where products overflow 64 bits.
constexpr int kMaxSize = 1 << 22;
constexpr int kMaxLayers = 4096;

struct Family {
  const char* model_type;
  const char* architecture;
};
constexpr Family kFamilies[] = {{"llama", "LlamaForCausalLM"},
                                {"mistral", "MistralForCausalLM"},
                                {"qwen2", "Qwen2ForCausalLM"},
                                {"qwen3", "Qwen3ForCausalLM"},
                                {"gpt2", "GPT2LMHeadModel"}};

// The model type, if it and the architecture are ones we run.
std::string ReadModelType(ConfigFields& fields) {
  const std::string type = fields.String("model_type");
  const auto* family =
      std::find_if(std::begin(kFamilies), std::end(kFamilies),
                   [&type](const Family& f) { return type == f.model_type; });
  if (family == std::end(kFamilies)) {
    const std::string ours =
        absl::StrJoin(kFamilies, ", ", [](std::string* out, const Family& f) {
          absl::StrAppend(out, f.model_type);
        });
    fields.Unsupported(absl::StrCat("model_type \"", type,
                                    "\", which is none of ", ours, ","));
    return type;
  }
  const json* architectures = fields.Find("architectures");
  if (architectures == nullptr) return type;
  if (!architectures->is_array() || architectures->size() != 1 ||
      (*architectures)[0] != family->architecture) {
    fields.Unsupported(absl::StrCat("architectures ", architectures->dump()));
  }
  return type;
}

// Whatever would change the numbers and is not in ModelConfig.
void RefuseUnsupportedParts(ConfigFields& fields) {
  if (const json* quantization = fields.Find("quantization_config")) {
    fields.Unsupported(
        absl::StrCat("quantization_config ", Briefly(*quantization)));
  }
  for (const char* name :
       {"num_experts", "num_local_experts", "dual_chunk_attention_config",
        "attention_sinks", "num_nextn_predict_layers"}) {
    if (fields.Find(name) != nullptr) fields.Unsupported(name);
  }
  for (const char* name : {"scale_attn_by_inverse_layer_idx",
                           "add_cross_attention", "is_encoder_decoder"}) {
    if (fields.Bool(name, false)) fields.Unsupported(name);
  }
  if (fields.Number("partial_rotary_factor", 1.0) != 1.0) {
    fields.Unsupported("partial_rotary_factor other than 1");
  }
}

// Mistral: one window for all layers. Qwen: by layer_types, else from layer
// max_window_layers on; only with use_sliding_window.
void ReadSlidingWindows(ConfigFields& fields, ModelConfig& config) {
  config.sliding_windows.assign(config.num_layers, 0);
  if (config.model_type == "mistral") {
    if (fields.IsNull("sliding_window")) return;
    config.sliding_windows.assign(
        config.num_layers,
        fields.Int("sliding_window", 1, kMaxContextLength, 4096));
    return;
  }
  if (config.model_type != "qwen2" && config.model_type != "qwen3") return;

  const json* layer_types = fields.Find("layer_types");
  const bool is_used = fields.Bool("use_sliding_window", false) &&
                       !fields.IsNull("sliding_window");
  const int window =
      is_used ? fields.Int("sliding_window", 1, kMaxContextLength, 4096) : 0;
  if (layer_types == nullptr) {
    const int first = fields.Int("max_window_layers", 0, kMaxLayers, 28);
    for (int i = first; i < config.num_layers; ++i) {
      config.sliding_windows[i] = window;
    }
    return;
  }
  if (!layer_types->is_array() ||
      static_cast<int>(layer_types->size()) != config.num_layers) {
    fields.Invalid("layer_types does not have one entry a layer");
    return;
  }
  for (int i = 0; i < config.num_layers; ++i) {
    const json& type = (*layer_types)[i];
    if (type == "sliding_attention" && is_used) {
      config.sliding_windows[i] = window;
    } else if (type == "sliding_attention") {
      fields.Invalid("layer_types has sliding_attention without a window");
    } else if (type != "full_attention") {
      fields.Unsupported(absl::StrCat("layer type ", type.dump()));
    }
  }
}

void ReadLlamaLike(ConfigFields& fields, ModelConfig& config) {
  config.hidden_size = fields.Int("hidden_size", 1, kMaxSize);
  config.intermediate_size = fields.Int("intermediate_size", 1, kMaxSize);
  config.num_layers = fields.Int("num_hidden_layers", 1, kMaxLayers);
  config.num_heads = fields.Int("num_attention_heads", 1, kMaxSize);
  config.context_length =
      fields.Int("max_position_embeddings", 1, kMaxContextLength);
  if (!fields.status().ok()) return;

  // A missing count means all heads in Llama; elsewhere the default depends on
  // the version that wrote the file.
  const bool has_default =
      config.model_type == "llama" || fields.IsNull("num_key_value_heads");
  config.num_kv_heads =
      has_default
          ? fields.Int("num_key_value_heads", 1, kMaxSize, config.num_heads)
          : fields.Int("num_key_value_heads", 1, kMaxSize);
  config.head_dim =
      fields.Int("head_dim", 1, kMaxSize,
                 std::max(1, config.hidden_size / config.num_heads));
  if (fields.Find("head_dim") == nullptr &&
      config.hidden_size % config.num_heads != 0) {
    fields.Invalid("num_attention_heads does not divide hidden_size");
  }
  const std::string activation = fields.String("hidden_act", "silu");
  if (activation != "silu") {
    fields.Unsupported(absl::StrCat("hidden_act \"", activation, "\""));
  }
  config.norm_epsilon = fields.PositiveNumber("rms_norm_eps", 1e-6);
  config.has_tied_head = fields.Bool("tie_word_embeddings", false);

  // Qwen2 and Mistral take no notice of attention_bias.
  const bool attention_bias = fields.Bool("attention_bias", false);
  if (config.model_type == "llama" || config.model_type == "qwen3") {
    config.has_qkv_bias = attention_bias;
    config.has_attention_output_bias = attention_bias;
  } else if (config.model_type == "qwen2") {
    config.has_qkv_bias = true;
  } else if (attention_bias) {
    fields.Unsupported("attention_bias");
  }
  const bool mlp_bias = fields.Bool("mlp_bias", false);
  config.has_feed_forward_bias = config.model_type == "llama" && mlp_bias;
  if (mlp_bias && config.model_type != "llama") fields.Unsupported("mlp_bias");
  config.has_qk_norm = config.model_type == "qwen3";
  ReadRope(fields, config);
  ReadSlidingWindows(fields, config);
}

void ReadGpt2(ConfigFields& fields, ModelConfig& config) {
  config.layout = ModelLayout::kGpt2;
  config.norm = NormKind::kLayer;
  config.positions = PositionKind::kLearned;
  config.feed_forward = FeedForwardKind::kGelu;
  config.hidden_size = fields.Int("n_embd", 1, kMaxSize);
  config.num_layers = fields.Int("n_layer", 1, kMaxLayers);
  config.num_heads = fields.Int("n_head", 1, kMaxSize);
  config.context_length = fields.Int("n_positions", 1, kMaxSize);
  config.intermediate_size =
      fields.Int("n_inner", 1, kMaxSize, 4 * config.hidden_size);
  if (!fields.status().ok()) return;
  if (config.hidden_size % config.num_heads != 0) {
    fields.Invalid("n_head does not divide n_embd");
  }
  config.num_kv_heads = config.num_heads;
  config.head_dim = config.hidden_size / config.num_heads;
  const std::string activation =
      fields.String("activation_function", "gelu_new");
  // Two names of one function: the tanh approximation.
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    fields.Unsupported(
        absl::StrCat("activation_function \"", activation, "\""));
  }
  if (!fields.Bool("scale_attn_weights", true)) {
    fields.Unsupported("scale_attn_weights false");
  }
  config.norm_epsilon = fields.PositiveNumber("layer_norm_epsilon", 1e-5);
  config.has_qkv_bias = true;
  config.has_attention_output_bias = true;
  config.has_feed_forward_bias = true;
  config.has_tied_head = fields.Bool("tie_word_embeddings", true);
  config.sliding_windows.assign(config.num_layers, 0);
}

// eos_token_id: absent, null, a number or a list. An id that the vocabulary
// lacks is of another model, or a mistake: texts would never end.
void AddEosIds(ConfigFields& fields, ModelConfig& config) {
  const json* value = fields.Find("eos_token_id");
  if (value == nullptr) return;
  const json ids = value->is_array() ? *value : json::array({*value});
  for (const json& id : ids) {
    if (!id.is_number_integer()) {
      fields.Invalid("eos_token_id is neither an integer nor a list of them");
      return;
    }
    const int64_t token = id.get<int64_t>();
    if (token < 0 || token >= config.vocab_size) {
      fields.Invalid(absl::StrCat("eos_token_id ", id.dump(),
                                  " is not in the vocabulary of ",
                                  config.vocab_size));
      return;
    }
    const TokenId eos = static_cast<TokenId>(token);
    if (std::find(config.eos_ids.begin(), config.eos_ids.end(), eos) ==
        config.eos_ids.end()) {
      config.eos_ids.push_back(eos);
    }
  }
}

void CheckHeads(ConfigFields& fields, const ModelConfig& config) {
  if (!fields.status().ok()) return;
  if (config.num_heads % config.num_kv_heads != 0) {
    fields.Invalid("num_key_value_heads does not divide num_attention_heads");
  }
  if (config.positions == PositionKind::kRotary && config.head_dim % 2 != 0) {
    fields.Invalid(
        absl::StrCat("head_dim ", config.head_dim, " is odd: cannot rotate"));
  }
  if (int64_t{config.num_heads} * config.head_dim > kMaxSize) {
    fields.Invalid("num_attention_heads * head_dim is too large");
  }
}

}  // namespace

absl::StatusOr<ModelConfig> ParseModelConfig(const json& object,
                                             const std::string& what) {
  ConfigFields fields(object, what);
  ModelConfig config;
  config.model_type = ReadModelType(fields);
  RefuseUnsupportedParts(fields);
  OUTRIDER_RETURN_IF_ERROR(fields.status());
  config.vocab_size = fields.Int("vocab_size", 1, kMaxSize);
  if (config.model_type == "gpt2") {
    ReadGpt2(fields, config);
  } else {
    ReadLlamaLike(fields, config);
  }
  CheckHeads(fields, config);
  AddEosIds(fields, config);
  OUTRIDER_RETURN_IF_ERROR(fields.status());
  return config;
}

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/config.json");
  OUTRIDER_ASSIGN_OR_RETURN(const json object, ReadStrictJson(path, {}));
  OUTRIDER_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(object, path));

  const std::string generation_path =
      absl::StrCat(directory, "/generation_config.json");
  const auto generation = ReadStrictJson(generation_path, {});
  if (absl::IsNotFound(generation.status())) return config;
  OUTRIDER_RETURN_IF_ERROR(generation.status());
  ConfigFields fields(*generation, generation_path);
  AddEosIds(fields, config);
  OUTRIDER_RETURN_IF_ERROR(fields.status());
  return config;
}

}  // namespace outrider
