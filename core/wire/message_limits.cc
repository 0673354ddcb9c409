// SPDX-License-Identifier: Apache-2.0
#include "core/wire/message_limits.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/sampling/token_logprobs.h"

namespace outrider {
namespace {

constexpr int64_t kIdBytes = 4;
constexpr int64_t kNumberBytes = 8;  // of float64, the widest
// What a row has beside its tokens: tags, lengths, masses, a tail token.
constexpr int64_t kRowBytes = 128;
// What a message has beside its rows and tokens: header and parameters, 1024
// entries of logit bias, and what a newer peer may add.
constexpr int64_t kOtherBytes = 64 << 10;
// Drafting by n-grams has no end of its context; texts have.
constexpr int64_t kLongestContext = 4 << 20;
// Nodes describe themselves: whatever one says, the products below fit.
constexpr int64_t kMostDrafts = 1 << 16;
constexpr int64_t kMostOutcomes = 1 << 8;

int64_t Within(int64_t value, int64_t most) {
  return std::clamp<int64_t>(value, 0, most);
}

int ToLimit(int64_t bytes) {
  return static_cast<int>(
      std::min<int64_t>(bytes, std::numeric_limits<int>::max()));
}

}  // namespace

MessageLimits LimitsOf(const NodeDescription& node) {
  const int64_t num_ids =
      Within(node.vocab_size, std::numeric_limits<int>::max());
  const int64_t num_drafts = Within(node.max_draft_tokens, kMostDrafts);
  // Packed, the ids of a row take no more than a bit for each of the
  // vocabulary.
  const int64_t draft_row_bytes =
      kRowBytes + num_ids / 8 + num_ids * kNumberBytes;
  // A row of SPARSE with scores is more than the float32 logits of FULL.
  const int64_t target_row_bytes = kRowBytes + num_ids * 2 * kNumberBytes +
                                   kMaxTopLogprobs * (kIdBytes + kNumberBytes);
  const int64_t context_bytes =
      kIdBytes * Within(node.context_length, kLongestContext);
  const int64_t draft_bytes = num_drafts * (kIdBytes + draft_row_bytes);
  const int64_t in_flight_bytes = num_drafts * kIdBytes;
  // Either one after the committed text, or one for each outcome.
  const int64_t num_blocks = Within(node.max_outcomes, kMostOutcomes);
  return {
      .draft_request = ToLimit(kOtherBytes + context_bytes + in_flight_bytes),
      .draft_response = ToLimit(kOtherBytes + std::max<int64_t>(1, num_blocks) *
                                                  (kRowBytes + draft_bytes)),
      .verify_request = ToLimit(kOtherBytes + context_bytes + draft_bytes),
      .verify_response =
          ToLimit(kOtherBytes + (num_drafts + 1) * target_row_bytes)};
}

}  // namespace outrider
