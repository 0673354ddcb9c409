// SPDX-License-Identifier: Apache-2.0
#include "core/session/token_log.h"

#include <cstring>

#include "core/base/check.h"
#include "core/session/siphash.h"

namespace outrider {

uint64_t TokenLog::PrefixHash(int prefix_length) const {
  OUTRIDER_CHECK(prefix_length >= 0 && prefix_length <= length());
  return prefix_length == 0 ? 0 : hashes_[prefix_length - 1];
}

void TokenLog::Append(absl::Span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    char block[12];
    const uint64_t previous = PrefixHash(length());
    std::memcpy(block, &previous, 8);
    std::memcpy(block + 8, &token, 4);
    hashes_.push_back(
        SipHash24(session_.bytes, absl::string_view(block, sizeof(block))));
    tokens_.push_back(token);
  }
}

void TokenLog::TruncateTo(int new_length) {
  OUTRIDER_CHECK(new_length >= 0 && new_length <= length());
  if (new_length == 0) {
    // A session that is preempted gives its memory back, this too.
    std::vector<TokenId>().swap(tokens_);
    std::vector<uint64_t>().swap(hashes_);
    return;
  }
  tokens_.resize(new_length);
  hashes_.resize(new_length);
}

}  // namespace outrider
