// SPDX-License-Identifier: Apache-2.0
// A config.json of anybody's: refused with words, or a model that can be built.
#include "absl/strings/match.h"
#include "core/json/strict_json.h"
#include "core/model/model_config.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {
namespace {

void CheckUsable(const ModelConfig& config) {
  OUTRIDER_CHECK(config.vocab_size > 0 && config.hidden_size > 0);
  OUTRIDER_CHECK(config.num_layers > 0 && config.context_length > 0);
  OUTRIDER_CHECK(config.num_kv_heads > 0 && config.head_dim > 0);
  OUTRIDER_CHECK(config.num_heads % config.num_kv_heads == 0);
  OUTRIDER_CHECK(config.sliding_windows.size() ==
                 static_cast<size_t>(config.num_layers));
  for (const TokenId id : config.eos_ids) {
    OUTRIDER_CHECK(id >= 0 && id < config.vocab_size);
  }
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;           // NOLINT: a program of one function
  using namespace outrider::testing;  // NOLINT
  const auto json = ParseStrictJson(AsText(data, size), "config.json", {});
  if (!json.ok()) {
    CheckRefusal(json.status());
    return 0;
  }
  const auto config = ParseModelConfig(*json, "config.json");
  if (config.ok()) {
    CheckUsable(*config);
  } else {
    CheckRefusal(config.status());
  }
  return 0;
}
