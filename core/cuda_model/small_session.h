// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_SMALL_SESSION_H_
#define OUTRIDER_CORE_CUDA_MODEL_SMALL_SESSION_H_

#include <vector>

#include "absl/types/span.h"
#include "core/model/causal_lm.h"

// Sessions of the model in small_model.h.
namespace outrider {

// Tokens of a text, which `salt` makes another one.
inline std::vector<TokenId> SmallText(int count, int salt) {
  std::vector<TokenId> tokens;
  tokens.reserve(count);
  for (int i = 0; i < count; ++i) {
    tokens.push_back((i * 31 + salt * 17 + i / 7) % 50);
  }
  return tokens;
}

// Blocks first, first + step, ... for so many positions.
inline std::vector<KvBlockId> SmallTable(int first, int step, int length) {
  std::vector<KvBlockId> table;
  table.reserve(NumKvBlocks(length));
  for (int i = 0; i < NumKvBlocks(length); ++i) {
    table.push_back(first + i * step);
  }
  return table;
}

// What passes, and their parts, are made of.
struct SmallSession {
  std::vector<TokenId> tokens = {};
  std::vector<KvBlockId> table = {};

  Extension Run(int begin, int end, int num_rows) const {
    return {.blocks = table,
            .cached_length = begin,
            .tokens = absl::MakeConstSpan(tokens).subspan(begin, end - begin),
            .num_rows = num_rows};
  }
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_SMALL_SESSION_H_
