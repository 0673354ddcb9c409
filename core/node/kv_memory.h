// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_KV_MEMORY_H_
#define OUTRIDER_CORE_NODE_KV_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/causal_lm.h"

namespace outrider {

// How much memory a node gives to keys and values (--kv-cache-memory).
struct KvMemory {
  int64_t bytes = 0;  // 0: a share
  double share = 0;   // of what the device could give; 0: by its kind
};

// "auto", a share like "80%", or bytes like "512MiB", "4G" or "1000000".
absl::StatusOr<KvMemory> ParseKvMemory(const std::string& text);

// Sets up so many KV blocks of the model, and returns how many: at least
// `least` tokens, and not more than `most` tokens could ever use.
// INVALID_ARGUMENT: less than the least. RESOURCE_EXHAUSTED: not there.
absl::StatusOr<int> SetUpKvBlocks(CausalLm& model, const KvMemory& memory,
                                  int64_t least, int64_t most);

// "1.5 GiB".
std::string BytesForPeople(int64_t bytes);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_KV_MEMORY_H_
