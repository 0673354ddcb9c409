// SPDX-License-Identifier: Apache-2.0
// A generation_config.json of anybody's beside a good config.json: refused with
// words, or end-of-sequence ids that the vocabulary has.
#include <algorithm>
#include <vector>

#include "core/model/model_config.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/scratch_folder.h"

namespace outrider::testing {
namespace {

// The smallest that there is of the llama family.
constexpr char kConfig[] = R"({
  "model_type": "llama", "vocab_size": 8, "hidden_size": 4,
  "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
  "max_position_embeddings": 16, "rms_norm_eps": 1e-5, "eos_token_id": 7})";

void Try(absl::string_view input) {
  static const ScratchFolder folder("generation_config");
  folder.Write("config.json", kConfig);
  folder.Write("generation_config.json", input);
  const auto config = ReadModelConfig(folder.path());
  if (!config.ok()) {
    CheckRefusal(config.status());
    return;
  }
  const std::vector<TokenId>& ids = config->eos_ids;
  OUTRIDER_CHECK(!ids.empty() && ids[0] == 7);
  for (const TokenId id : ids) {
    OUTRIDER_CHECK(id >= 0 && id < config->vocab_size);
    OUTRIDER_CHECK(std::count(ids.begin(), ids.end(), id) == 1);
  }
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::testing::Try(outrider::testing::AsText(data, size));
  return 0;
}
