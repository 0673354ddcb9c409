// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_CACHE_MIRROR_H_
#define OUTRIDER_COORDINATOR_ROUND_CACHE_MIRROR_H_

#include <algorithm>

#include "core/base/session_id.h"
#include "core/session/cache_delta.h"
#include "core/session/token_log.h"

namespace outrider {

// What we know of one node's KV cache: how many leading tokens of the committed
// sequence it holds, and in which life of the session. Thread-compatible.
class CacheMirror {
 public:
  // What makes the cache hold all committed tokens. At least one token is
  // always appended: a forward pass needs an input.
  CacheDelta CatchUp(const TokenLog& committed) const {
    const int keep = std::min(length_, committed.length() - 1);
    const absl::Span<const TokenId> missing = committed.From(keep);
    return {.keep_length = keep,
            .append_tokens = {missing.begin(), missing.end()}};
  }

  // A reply came: the node says how much it holds, and in which life.
  void Acknowledged(int length, const Incarnation& incarnation) {
    length_ = length;
    incarnation_ = incarnation;
  }
  // A verdict came: beyond `prefix_length` the node holds refused tokens.
  void SharesOnly(int prefix_length) {
    length_ = std::min(length_, prefix_length);
  }
  // A miss for length: the node is alive but holds less than we thought.
  void ShrankTo(int length) { length_ = std::min(length_, length); }
  // Any other miss, or a move: the next delta opens and sends everything.
  void Forget() { *this = CacheMirror(); }

  int length() const { return length_; }
  const Incarnation& incarnation() const { return incarnation_; }

 private:
  int length_ = 0;
  Incarnation incarnation_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_CACHE_MIRROR_H_
