// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_TOKEN_LOG_H_
#define OUTRIDER_CORE_SESSION_TOKEN_LOG_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/session_id.h"
#include "core/base/token.h"

namespace outrider {

// The tokens of one session, with a rolling hash for every prefix length:
// h(0) = 0, h(n+1) = SipHash-2-4(key = session id, h(n) || token n), little-
// endian. Keyed, because a plain hash could be forged. Thread-compatible.
class TokenLog {
 public:
  explicit TokenLog(const SessionId& session) : session_(session) {}

  int length() const { return static_cast<int>(tokens_.size()); }
  absl::Span<const TokenId> tokens() const { return tokens_; }
  // The tokens from `position` on; valid until the next change.
  absl::Span<const TokenId> From(int position) const {
    return absl::MakeConstSpan(tokens_).subspan(position);
  }
  // The hash over the first `prefix_length` tokens, at most length().
  uint64_t PrefixHash(int prefix_length) const;

  void Append(absl::Span<const TokenId> tokens);
  // Forgets everything from `new_length` on; new_length <= length(). Where that
  // is all, no memory is kept for what may come.
  void TruncateTo(int new_length);

 private:
  SessionId session_;
  std::vector<TokenId> tokens_;
  std::vector<uint64_t> hashes_;  // hashes_[i] covers the first i + 1 tokens
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_TOKEN_LOG_H_
