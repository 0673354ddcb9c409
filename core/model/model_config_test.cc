// SPDX-License-Identifier: Apache-2.0
#include "core/model/model_config.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace outrider {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json Llama() {
  return json::parse(R"({"model_type": "llama", "vocab_size": 100,
      "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_key_value_heads": 2,
      "max_position_embeddings": 512, "eos_token_id": 2})");
}

json Typed(const std::string& model_type) {
  json config = Llama();
  config["model_type"] = model_type;
  return config;
}

json Gpt2() {
  return json::parse(R"({"model_type": "gpt2", "vocab_size": 100,
      "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32})");
}

ModelConfig Parse(const json& config) {
  auto parsed = ParseModelConfig(config, "config.json");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : ModelConfig();
}

absl::Status Error(const json& config) {
  return ParseModelConfig(config, "config.json").status();
}

json With(json config, const json& changes) {
  config.update(changes);
  return config;
}

TEST(ModelConfigTest, LlamaDefaultsAreThoseOfTheFamily) {
  const ModelConfig config = Parse(Llama());
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.norm_epsilon, 1e-6);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_FALSE(config.has_tied_head);
  EXPECT_FALSE(config.has_qkv_bias);
  EXPECT_THAT(config.sliding_windows, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(config.eos_ids, ElementsAre(2));
}

TEST(ModelConfigTest, MissingKvHeadsMeanAllHeadsInLlamaOnly) {
  json config = Llama();
  config.erase("num_key_value_heads");
  EXPECT_EQ(Parse(config).num_kv_heads, 8);
  config["model_type"] = "qwen2";
  EXPECT_THAT(std::string(Error(config).message()),
              HasSubstr("num_key_value_heads"));
}

TEST(ModelConfigTest, RopeIsReadFromBothGenerationsOfTheLibrary) {
  const json scaling = json::parse(R"({"rope_type": "llama3", "factor": 8,
      "low_freq_factor": 1, "high_freq_factor": 4,
      "original_max_position_embeddings": 128})");
  const ModelConfig old =
      Parse(With(Llama(), {{"rope_theta", 5e5}, {"rope_scaling", scaling}}));
  const ModelConfig recent = Parse(With(
      Llama(), {{"rope_parameters", With(scaling, {{"rope_theta", 5e5}})}}));
  for (const ModelConfig& config : {old, recent}) {
    EXPECT_EQ(config.rope_theta, 5e5);
    EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kLlama3);
    EXPECT_EQ(config.rope_scaling.factor, 8.0);
    EXPECT_EQ(config.rope_scaling.high_freq_factor, 4.0);
    EXPECT_EQ(config.rope_scaling.original_context_length, 128.0);
  }
  const ModelConfig legacy = Parse(
      With(Llama(), {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}));
  EXPECT_EQ(legacy.rope_scaling.kind, RopeScaling::Kind::kLinear);
}

// The model cards of Qwen2.5 and Qwen3 have it so, and leave
// max_position_embeddings as it was.
TEST(ModelConfigTest, YarnIsReadWithItsDefaultsAndStretchesTheContext) {
  json yarn = {{"type", "yarn"},
               {"factor", 4.0},
               {"original_max_position_embeddings", 32768}};
  const ModelConfig config =
      Parse(With(Typed("qwen3"), {{"rope_scaling", yarn}}));
  const RopeScaling& scaling = config.rope_scaling;
  EXPECT_EQ(scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(scaling.factor, 4.0);
  EXPECT_EQ(scaling.original_context_length, 32768);
  EXPECT_EQ(scaling.beta_fast, 32.0);
  EXPECT_EQ(scaling.beta_slow, 1.0);
  EXPECT_TRUE(scaling.has_whole_bounds);
  EXPECT_NEAR(scaling.magnitude, 1.1386294, 1e-7);
  EXPECT_EQ(config.context_length, 131072);

  yarn["mscale"] = 2.0;
  yarn["mscale_all_dim"] = 1.0;
  EXPECT_NEAR(Parse(With(Typed("qwen3"), {{"rope_scaling", yarn}}))
                  .rope_scaling.magnitude,
              1.2772589 / 1.1386294, 1e-6);
  yarn["attention_factor"] = 1.5;
  yarn["beta_fast"] = 8;
  yarn["truncate"] = false;
  const RopeScaling named =
      Parse(With(Typed("qwen3"), {{"rope_parameters", yarn}})).rope_scaling;
  EXPECT_EQ(named.magnitude, 1.5);
  EXPECT_EQ(named.beta_fast, 8);
  EXPECT_FALSE(named.has_whole_bounds);
}

// DeepSeek-R1-0528-Qwen3-8B has it so, and its makers meant a magnitude of 1:
// by vLLM and SGLang, attn_factor multiplies what the factor gives.
TEST(ModelConfigTest, AttnFactorMultipliesYarnsOwnMagnitude) {
  json yarn = {{"rope_type", "yarn"},
               {"factor", 4.0},
               {"original_max_position_embeddings", 32768},
               {"attn_factor", 0.8782488562869419}};
  const auto magnitude = [&yarn] {
    return Parse(With(Typed("qwen3"), {{"rope_scaling", yarn}}))
        .rope_scaling.magnitude;
  };
  EXPECT_NEAR(magnitude(), 1.0, 1e-12);
  yarn["mscale"] = 2.0;
  yarn["mscale_all_dim"] = 1.0;
  yarn["attn_factor"] = 0.5;
  EXPECT_NEAR(magnitude(), 0.5 * 1.2772589 / 1.1386294, 1e-6);

  yarn["attention_factor"] = 1.25;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(magnitude(), 1.25);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("attention_factor"), HasSubstr("attn_factor"),
                    HasSubstr("config.json: rope_scaling")));
}

// deepseek-coder's max_position_embeddings is the stretched length already.
TEST(ModelConfigTest, AStretchedContextThatMayBeTooLongSaysSo) {
  const auto log_of = [](const json& linear) {
    ::testing::internal::CaptureStderr();
    Parse(With(Llama(),
               {{"max_position_embeddings", 16384}, {"rope_scaling", linear}}));
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of({{"type", "linear"}, {"factor", 4.0}}),
              AllOf(HasSubstr("config.json: rope_scaling: "),
                    HasSubstr("65536 = 4 x 16384"), HasSubstr("to 4096")));
  EXPECT_THAT(log_of({{"type", "linear"}, {"factor", 2.5}}),
              AllOf(HasSubstr("40960 = 2.5 x 16384"), HasSubstr("to 6553.6")));
  EXPECT_EQ(log_of({{"type", "linear"},
                    {"factor", 4.0},
                    {"original_max_position_embeddings", 4096}}),
            "");
  EXPECT_EQ(log_of({{"type", "linear"}, {"factor", 1.0}}), "");
}

TEST(ModelConfigTest, KeysOfARopeThatWouldChangeItsNumbersAreRefusedByName) {
  const json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
  const std::vector<std::pair<const char*, json>> refused = {
      {"extrapolation_factor", 0.5},   {"apply_yarn_scaling", false},
      {"partial_rotary_factor", 0.5},  {"llama_4_scaling_beta", 0.1},
      {"mrope_section", {16, 24, 24}}, {"full_attention", json::object()}};
  for (const auto& [key, value] : refused) {
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
      const absl::Status status =
          Error(With(Llama(), {{name, With(yarn, {{key, value}})}}));
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << key;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(key), HasSubstr(name)));
    }
  }
}

// What published models have there: Qwen2.5, Llama 3.1, Yarn-Mistral, vicuna,
// and what vLLM reads with the values that it has anyway.
TEST(ModelConfigTest, HarmlessKeysOfARopeAreRead) {
  for (const char* text :
       {R"({"type": "yarn", "rope_type": "yarn", "factor": 4.0,
            "original_max_position_embeddings": 128})",
        R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192})",
        R"({"type": "yarn", "factor": 16.0, "finetuned": true,
            "original_max_position_embeddings": 128})",
        R"({"type": "linear", "factor": 4.0})",
        R"({"rope_type": "yarn", "factor": 4.0, "beta_fast": 32,
            "beta_slow": 1, "truncate": true, "attn_factor": 1.0,
            "mscale": 1.0, "mscale_all_dim": 1.0, "extrapolation_factor": 1,
            "apply_yarn_scaling": true, "partial_rotary_factor": 1.0})",
        R"({"rope_type": "default", "rope_theta": 1000000})"}) {
    const absl::Status status =
        Error(With(Llama(), {{"rope_scaling", json::parse(text)}}));
    EXPECT_TRUE(status.ok()) << status << text;
  }
}

// vicuna-7b-v1.5-16k: its max_position_embeddings is that of Llama 2.
TEST(ModelConfigTest, LinearScalingStretchesTheContext) {
  const auto length = [](const json& linear) {
    return Parse(With(Llama(), {{"max_position_embeddings", 4096},
                                {"rope_scaling", linear}}))
        .context_length;
  };
  EXPECT_EQ(length({{"type", "linear"}, {"factor", 4.0}}), 16384);
  EXPECT_EQ(length({{"type", "linear"},
                    {"factor", 2.5},
                    {"original_max_position_embeddings", 2048}}),
            5120);
  // Llama 3.1 has its whole context there.
  EXPECT_EQ(length({{"type", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1},
                    {"high_freq_factor", 4},
                    {"original_max_position_embeddings", 512}}),
            4096);
}

// transformers 5 reads it so.
TEST(ModelConfigTest, ARopeWithoutATypeIsTheDefaultOne) {
  const json theta = {{"rope_theta", 5e5}};
  for (const json& config :
       {With(Llama(), {{"rope_parameters", theta}}),
        With(Llama(),
             {{"rope_parameters", theta},
              {"rope_scaling", {{"type", "default"}, {"rope_theta", 5e5}}}})}) {
    EXPECT_EQ(Parse(config).rope_theta, 5e5);
    EXPECT_EQ(Parse(config).rope_scaling.kind, RopeScaling::Kind::kNone);
  }
  EXPECT_EQ(Parse(With(Llama(), {{"rope_scaling", json::object()}}))
                .rope_scaling.kind,
            RopeScaling::Kind::kNone);
}

// What transformers 5 writes for a Qwen3, and what the cards of such models say
// to add for longer texts.
TEST(ModelConfigTest, ARopeScalingBesideOtherRopeParametersIsNotDropped) {
  const json saved = With(
      Typed("qwen3"), {{"rope_parameters",
                        {{"rope_theta", 1000000}, {"rope_type", "default"}}}});
  EXPECT_EQ(Parse(saved).rope_theta, 1e6);
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"original_max_position_embeddings", 32768}};
  const json linear = {{"type", "linear"}, {"factor", 4.0}};
  const json other_theta = {{"rope_type", "default"}, {"rope_theta", 10000}};
  // Its rope_theta is the default, 10000, to transformers.
  const json no_theta = {{"rope_type", "default"}};
  for (const json& scaling : {yarn, linear, other_theta, no_theta}) {
    const absl::Status status = Error(With(saved, {{"rope_scaling", scaling}}));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << scaling;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("rope_parameters"), HasSubstr("rope_scaling {"),
                      HasSubstr("keep one of them"), HasSubstr("config.json")));
  }
}

TEST(ModelConfigTest, RopesOfBothGenerationsMayStandSideBySideIfTheyAgree) {
  const json linear = {{"type", "linear"}, {"factor", 4}};
  const json recent = {
      {"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 5e5}};
  for (const ModelConfig& config :
       {Parse(With(Llama(), {{"rope_theta", 5e5},
                             {"rope_scaling", linear},
                             {"rope_parameters", recent}})),
        Parse(With(Llama(), {{"rope_scaling", nullptr},
                             {"rope_parameters", recent}}))}) {
    EXPECT_EQ(config.rope_theta, 5e5);
    EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kLinear);
    EXPECT_EQ(config.rope_scaling.factor, 4.0);
  }
}

// The fields of SmolLM2-1.7B-Instruct, which names more than it uses.
TEST(ModelConfigTest, SmolLm2IsALlama) {
  const ModelConfig config = Parse(json::parse(R"({
      "architectures": ["LlamaForCausalLM"], "attention_bias": false,
      "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
      "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
      "intermediate_size": 8192, "is_llama_config": true,
      "max_position_embeddings": 8192, "mlp_bias": false,
      "model_type": "llama", "num_attention_heads": 32,
      "num_hidden_layers": 24, "num_key_value_heads": 32, "pad_token_id": 2,
      "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false,
      "rope_scaling": null, "rope_theta": 130000, "tie_word_embeddings": true,
      "torch_dtype": "bfloat16",
      "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
      "transformers_version": "4.42.3", "use_cache": true,
      "vocab_size": 49152})"));
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.num_kv_heads, 32);
  EXPECT_EQ(config.rope_theta, 130000.0);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_TRUE(config.has_tied_head);
  EXPECT_FALSE(config.has_qkv_bias);
  EXPECT_THAT(config.eos_ids, ElementsAre(2));
}

TEST(ModelConfigTest, WindowsFollowTheRulesOfEachFamily) {
  const json window = {{"sliding_window", 16}};
  EXPECT_THAT(Parse(With(Llama(), window)).sliding_windows, Each(0));
  EXPECT_THAT(Parse(With(Typed("mistral"), window)).sliding_windows, Each(16));
  EXPECT_THAT(Parse(Typed("mistral")).sliding_windows, Each(4096));
  EXPECT_THAT(Parse(With(Typed("mistral"), {{"sliding_window", nullptr}}))
                  .sliding_windows,
              Each(0));
  EXPECT_THAT(Parse(With(Typed("qwen2"), window)).sliding_windows, Each(0));

  json qwen = With(With(Typed("qwen2"), window),
                   {{"use_sliding_window", true}, {"max_window_layers", 3}});
  EXPECT_THAT(Parse(qwen).sliding_windows, ElementsAre(0, 0, 0, 16));
  qwen["layer_types"] = {"sliding_attention", "full_attention",
                         "full_attention", "sliding_attention"};
  EXPECT_THAT(Parse(qwen).sliding_windows, ElementsAre(16, 0, 0, 16));
}

TEST(ModelConfigTest, FamiliesDifferInBiasesNormsAndPositions) {
  EXPECT_TRUE(Parse(Typed("qwen2")).has_qkv_bias);
  EXPECT_FALSE(Parse(Typed("qwen2")).has_attention_output_bias);
  EXPECT_TRUE(Parse(Typed("qwen3")).has_qk_norm);
  EXPECT_FALSE(Parse(Typed("qwen3")).has_qkv_bias);
  EXPECT_TRUE(Parse(With(Llama(), {{"attention_bias", true}}))
                  .has_attention_output_bias);
  EXPECT_TRUE(Parse(With(Llama(), {{"mlp_bias", true}})).has_feed_forward_bias);

  const ModelConfig gpt2 = Parse(Gpt2());
  EXPECT_EQ(gpt2.positions, PositionKind::kLearned);
  EXPECT_EQ(gpt2.norm, NormKind::kLayer);
  EXPECT_EQ(gpt2.intermediate_size, 256);
  EXPECT_EQ(gpt2.context_length, 32);
  EXPECT_TRUE(gpt2.has_tied_head);
}

TEST(ModelConfigTest, EosIdsMayBeNullAbsentOrAListOfTheVocabulary) {
  const auto eos = [](const json& value) {
    return Parse(With(Llama(), {{"eos_token_id", value}})).eos_ids;
  };
  EXPECT_THAT(eos(nullptr), IsEmpty());
  EXPECT_THAT(eos({5, 6, 5}), ElementsAre(5, 6));
  for (const json& bad : {json(-1), json(100), json({5, 100}), json({5, -1})}) {
    const absl::Status status = Error(With(Llama(), {{"eos_token_id", bad}}));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("is not in the vocabulary of 100"));
  }
  EXPECT_EQ(Error(With(Llama(), {{"eos_token_id", "</s>"}})).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ModelConfigTest, WhatIsNotSupportedIsRefusedByName) {
  struct Case {
    json config;
    const char* part;
  };
  const auto rope = [](const char* type) {
    return With(Llama(), {{"rope_scaling", {{"rope_type", type}}}});
  };
  const std::vector<Case> cases = {
      {Typed("mixtral"), "mixtral"},
      {Typed("qwen3_moe"), "qwen3_moe"},
      {With(Llama(), {{"architectures", {"LlamaForSequenceClassification"}}}),
       "LlamaForSequenceClassification"},
      {rope("dynamic"), "dynamic"},
      {rope("longrope"), "longrope"},
      {With(Llama(), {{"hidden_act", "gelu"}}), "gelu"},
      {With(Llama(), {{"quantization_config", {{"quant_method", "gptq"}}}}),
       "gptq"},
      {With(Llama(), {{"quantization_config", 4}}), "quantization_config"},
      {With(Llama(), {{"num_local_experts", 8}}), "num_local_experts"},
      {With(Llama(), {{"partial_rotary_factor", 0.5}}),
       "partial_rotary_factor"},
      {With(Typed("mistral"), {{"attention_bias", true}}), "attention_bias"},
      {With(Typed("qwen3"), {{"mlp_bias", true}}), "mlp_bias"},
      {With(Typed("qwen2"), {{"layer_types",
                              {"linear_attention", "full_attention",
                               "full_attention", "full_attention"}}}),
       "linear_attention"},
      {With(Gpt2(), {{"activation_function", "relu"}}), "relu"},
      {With(Gpt2(), {{"scale_attn_weights", false}}), "scale_attn_weights"},
      {With(Gpt2(), {{"scale_attn_by_inverse_layer_idx", true}}),
       "scale_attn_by_inverse_layer_idx"},
      {With(Gpt2(), {{"add_cross_attention", true}}), "add_cross_attention"},
  };
  for (const Case& c : cases) {
    const absl::Status status = Error(c.config);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(c.part), HasSubstr("config.json")));
  }
}

TEST(ModelConfigTest, ValuesThatMakeNoSenseAreRefusedByField) {
  struct Case {
    json changes;
    const char* field;
  };
  const std::vector<Case> cases = {
      {{{"vocab_size", 0}}, "vocab_size"},
      {{{"vocab_size", "100"}}, "vocab_size"},
      {{{"vocab_size", nullptr}}, "vocab_size"},
      {{{"hidden_size", -64}}, "hidden_size"},
      {{{"hidden_size", 64.5}}, "hidden_size"},
      {{{"hidden_size", 18446744073709551615u}}, "hidden_size"},
      {{{"num_hidden_layers", 1000000}}, "num_hidden_layers"},
      {{{"num_attention_heads", 7}}, "num_attention_heads"},
      {{{"num_key_value_heads", 3}}, "num_key_value_heads"},
      {{{"head_dim", 7}}, "head_dim"},
      {{{"head_dim", 4194304}}, "head_dim"},
      {{{"rms_norm_eps", 0}}, "rms_norm_eps"},
      {{{"rope_theta", -1}}, "rope_theta"},
      {{{"rope_scaling", 3}}, "rope_scaling"},
      {{{"rope_scaling", {{"factor", 2}}}}, "rope_type is missing"},
      {{{"rope_scaling", {{"rope_type", "linear"}}}}, "factor"},
      {{{"rope_scaling", {{"rope_type", "linear"}, {"factor", 1e9}}}},
       "original_max_position_embeddings"},
      {{{"rope_scaling", {{"rope_type", "yarn"}}}}, "factor"},
      {{{"rope_scaling",
         {{"rope_type", "yarn"}, {"factor", 2}, {"attn_factor", 0}}}},
       "attn_factor"},
      {{{"rope_scaling",
         {{"rope_type", "yarn"},
          {"factor", 2},
          {"extrapolation_factor", "1"}}}},
       "extrapolation_factor"},
      {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 0.5}}}},
       "factor is below 1"},
      {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 1e9}}}},
       "original_max_position_embeddings"},
      {{{"rope_scaling",
         {{"rope_type", "yarn"}, {"factor", 2}, {"beta_slow", 64}}}},
       "beta_fast"},
      {{{"rope_theta", 1},
        {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2}}}},
       "rope_theta"},
      {{{"tie_word_embeddings", "yes"}}, "tie_word_embeddings"},
      {{{"hidden_act", 3}}, "hidden_act"},
      {{{"model_type", 3}}, "model_type"},
  };
  for (const Case& c : cases) {
    const absl::Status status = Error(With(Llama(), c.changes));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << c.changes << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.field));
  }
}

TEST(ModelConfigTest, LayerTypesMustFitLayersAndWindow) {
  json qwen = With(Typed("qwen2"), {{"layer_types", {"full_attention"}}});
  EXPECT_THAT(std::string(Error(qwen).message()), HasSubstr("layer_types"));
  qwen["layer_types"] = {"sliding_attention", "full_attention",
                         "full_attention", "full_attention"};
  EXPECT_THAT(std::string(Error(qwen).message()),
              HasSubstr("without a window"));
}

TEST(ModelConfigTest, NoConfigIsNotFound) {
  EXPECT_EQ(ReadModelConfig("/nonexistent").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace outrider
