// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_HASH_MODEL_H_
#define OUTRIDER_TESTS_SUPPORT_HASH_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/testing/table_lm.h"

namespace outrider::testing {

// Two related models of any vocabulary whose logits are hashed from the last
// three tokens: quick enough for whole clusters. The draft agrees with the
// target about half of the time.
std::vector<float> HashTarget(absl::Span<const TokenId> context,
                              int vocab_size);
std::vector<float> HashDraft(absl::Span<const TokenId> context, int vocab_size);

// The first `num_tokens` tokens of greedy plain decoding by the target.
TokenSeq PlainGreedy(TokenSeq prompt, int num_tokens, int vocab_size);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_HASH_MODEL_H_
