// SPDX-License-Identifier: Apache-2.0
#include "core/model/read_rope.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace outrider {
namespace {

// What both generations of the library mean by `rope`, in the same words.
nlohmann::json SpelledAlike(nlohmann::json rope, double rope_theta) {
  if (!rope.is_object()) return rope;
  if (!rope.contains("rope_type") && rope.contains("type")) {
    rope["rope_type"] = rope["type"];
  }
  rope.erase("type");
  if (!rope.contains("rope_type")) rope["rope_type"] = "default";
  if (!rope.contains("rope_theta")) rope["rope_theta"] = rope_theta;
  return rope;
}

// Where both are there transformers takes rope_scaling alone, with the default
// rope_theta if it has none. Whoever wrote the two may have meant another
// thing: what only one of them says must not be dropped silently.
void CheckRopesAgree(ConfigFields& fields, double rope_theta) {
  const nlohmann::json* recent = fields.Find("rope_parameters");
  const nlohmann::json* old = fields.Find("rope_scaling");
  if (recent == nullptr || old == nullptr) return;
  if (SpelledAlike(*recent, rope_theta) != SpelledAlike(*old, rope_theta)) {
    fields.Invalid(absl::StrCat(
        "rope_parameters ", Briefly(*recent), " and rope_scaling ",
        Briefly(*old),
        " differ, and transformers takes rope_scaling alone: keep one of them, "
        "with the rope_theta that the model was trained with"));
  }
}

// How much larger rotated queries and keys get, by YaRN's section 3.4: there
// the square of this is the inverse of a temperature, whose best value falls
// with the logarithm of the factor.
double MagnitudeOfYarn(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

// transformers takes attention_factor alone; attn_factor is vLLM's and
// SGLang's, and multiplies what is the default of the other.
double ReadMagnitude(ConfigFields& rope, double factor) {
  const double scale = rope.Number("mscale", 0);
  const double scale_of_all = rope.Number("mscale_all_dim", 0);
  const double by_factor = scale != 0 && scale_of_all != 0
                               ? MagnitudeOfYarn(factor, scale) /
                                     MagnitudeOfYarn(factor, scale_of_all)
                               : MagnitudeOfYarn(factor, 1);
  const double multiplier = rope.PositiveNumber("attn_factor", 1);
  if (rope.Find("attention_factor") && rope.Find("attn_factor")) {
    OUTRIDER_LOG(kWarning)
        << rope.where()
        << ": attention_factor counts, as in transformers, and attn_factor is "
           "ignored: keep the one that the model was trained with";
  }
  return rope.PositiveNumber("attention_factor", by_factor * multiplier);
}

// Published instructions add rope_scaling, and leave max_position_embeddings as
// it was: the context is as long as vLLM has it.
void StretchContext(ConfigFields& rope, double original, ModelConfig& config) {
  const double context = config.rope_scaling.factor * original;
  if (context < 1 || context > kMaxContextLength) {
    rope.Invalid(
        "factor times original_max_position_embeddings, or else "
        "max_position_embeddings, is no length");
    return;
  }
  config.context_length = static_cast<int>(context);
}

// Some checkpoints have the stretched length in max_position_embeddings, and
// nothing in them tells: they were never trained for texts that are longer.
void WarnOfStretch(const ConfigFields& rope, const ModelConfig& config,
                   double original) {
  const double factor = config.rope_scaling.factor;
  OUTRIDER_LOG(kWarning)
      << rope.where() << ": context " << config.context_length << " = "
      << factor << " x " << static_cast<int>(original)
      << ", the max_position_embeddings: set original_max_position_embeddings "
         "here, to "
      << original / factor << " if that length is the stretched one already, "
      << "and else to " << static_cast<int>(original);
}

void ReadLinear(ConfigFields& rope, ModelConfig& config) {
  config.rope_scaling.kind = RopeScaling::Kind::kLinear;
  const double factor = rope.PositiveNumber("factor");
  config.rope_scaling.factor = factor;
  const char* const name = "original_max_position_embeddings";
  const double original = rope.PositiveNumber(name, config.context_length);
  if (!rope.status().ok()) return;
  StretchContext(rope, original, config);
  const bool may_be_stretched = rope.Find(name) == nullptr && factor > 1;
  if (may_be_stretched && rope.status().ok()) {
    WarnOfStretch(rope, config, original);
  }
}

// Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language
// Models", with the names and defaults of transformers.
void ReadYarn(ConfigFields& rope, ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  scaling.kind = RopeScaling::Kind::kYarn;
  scaling.factor = rope.PositiveNumber("factor");
  scaling.original_context_length = rope.PositiveNumber(
      "original_max_position_embeddings", config.context_length);
  scaling.beta_fast = rope.PositiveNumber("beta_fast", scaling.beta_fast);
  scaling.beta_slow = rope.PositiveNumber("beta_slow", scaling.beta_slow);
  scaling.has_whole_bounds = rope.Bool("truncate", true);
  scaling.magnitude = ReadMagnitude(rope, scaling.factor);
  if (!rope.status().ok()) return;
  if (config.rope_theta <= 1) rope.Invalid("rope_theta is not above 1");
  if (scaling.factor < 1) rope.Invalid("factor is below 1");
  if (scaling.beta_fast < scaling.beta_slow) {
    rope.Invalid("beta_fast is below beta_slow");
  }
  StretchContext(rope, scaling.original_context_length, config);
}

void ReadLlama3(ConfigFields& rope, RopeScaling& scaling) {
  scaling.kind = RopeScaling::Kind::kLlama3;
  scaling.factor = rope.PositiveNumber("factor");
  scaling.low_freq_factor = rope.PositiveNumber("low_freq_factor");
  scaling.high_freq_factor = rope.PositiveNumber("high_freq_factor");
  scaling.original_context_length =
      rope.PositiveNumber("original_max_position_embeddings");
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    rope.Invalid("high_freq_factor is not above low_freq_factor");
  }
}

// transformers 5 takes a missing type for "default", which has no factor:
// whoever gives one meant another type.
std::string ReadType(ConfigFields& rope) {
  for (const char* name : {"rope_type", "type"}) {
    if (rope.Find(name) != nullptr) return rope.String(name);
  }
  if (rope.Find("factor") != nullptr) rope.Invalid("rope_type is missing");
  return "default";
}

void ReadScaling(ConfigFields& rope, ModelConfig& config) {
  const std::string type = ReadType(rope);
  if (type == "linear") {
    ReadLinear(rope, config);
  } else if (type == "llama3") {
    ReadLlama3(rope, config.rope_scaling);
  } else if (type == "yarn") {
    ReadYarn(rope, config);
  } else if (type != "default" && rope.status().ok()) {
    rope.Unsupported(absl::StrCat("rope type \"", type, "\""));
  }
}

// Whatever would change the numbers and is not in RopeScaling. A key of another
// type than the object's is ignored by transformers and vLLM too, and
// "finetuned" only tells how a model was made.
void RefuseUnsupportedKeys(ConfigFields& rope) {
  if (rope.Number("partial_rotary_factor", 1) != 1) {
    rope.Unsupported("partial_rotary_factor other than 1");
  }
  if (rope.Number("extrapolation_factor", 1) != 1) {
    rope.Unsupported("extrapolation_factor other than 1");
  }
  if (!rope.Bool("apply_yarn_scaling", true)) {
    rope.Unsupported("apply_yarn_scaling false");
  }
  rope.AllAmong({"rope_type", "type", "rope_theta", "factor",
                 "original_max_position_embeddings", "attention_factor",
                 "attn_factor", "beta_fast", "beta_slow", "mscale",
                 "mscale_all_dim", "truncate", "low_freq_factor",
                 "high_freq_factor", "partial_rotary_factor",
                 "extrapolation_factor", "apply_yarn_scaling", "finetuned"});
}

}  // namespace

void ReadRope(ConfigFields& fields, ModelConfig& config) {
  config.rope_theta = fields.PositiveNumber("rope_theta", 10000.0);
  CheckRopesAgree(fields, config.rope_theta);
  const char* name =
      fields.Find("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const nlohmann::json* object = fields.Find(name);
  if (object == nullptr) return;
  ConfigFields rope(*object, absl::StrCat(fields.where(), ": ", name));
  if (object->is_object()) {
    config.rope_theta = rope.PositiveNumber("rope_theta", config.rope_theta);
    ReadScaling(rope, config);
    RefuseUnsupportedKeys(rope);
  }
  fields.Adopt(rope.status());
}

}  // namespace outrider
