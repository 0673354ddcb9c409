// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_CACHE_DELTA_H_
#define OUTRIDER_CORE_SESSION_CACHE_DELTA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/session_id.h"
#include "core/base/token.h"

namespace outrider {

// Makes a cache hold the committed tokens: cut to keep_length, then append.
// Absolute, hence safe to send twice.
struct CacheDelta {
  int keep_length = 0;  // 0 opens, restarts or moves the session
  std::vector<TokenId> append_tokens = {};

  // Tokens that it makes the cache hold.
  size_t length() const { return keep_length + append_tokens.size(); }
};

inline constexpr size_t kMaxCacheSaltBytes = 256;

// What every Draft and Verify begins with (proto/README.md has the rules).
struct RequestHeader {
  SessionId session = {};
  Incarnation incarnation = {};  // none: this request opens the session
  uint64_t step = 0;  // rises with every new content, over both nodes
  CacheDelta delta = {};
  std::optional<uint64_t> prefix_hash = {};  // of the kept tokens
  // Where it opens: sessions of one salt may share what they begin with. Empty:
  // it shares with nobody.
  std::string cache_salt = {};
  // Where it opens: the stream comes from another node, when this one has time
  // for it (ReplyHeader::next_reprefill_in).
  bool is_moved = false;
  // Says of a release that nobody comes back for the text, which need not be
  // kept.
  bool is_over = false;
};

// A call, as far as a node's memory of its session is concerned.
struct SessionCall {
  const RequestHeader& header;
  uint64_t content_digest = 0;   // identifies the call's bytes
  int num_draft_tokens = 0;      // go into the cache besides the delta
  bool holds_up_stream = false;  // one that has begun
  bool is_ahead = false;         // a guess: takes but what is free
};

// Whether the stream of the session has begun: there are tokens after its
// prompt, of this node's or of another one's.
inline bool HasBegun(const RequestHeader& header, int prompt_length) {
  return header.delta.length() > static_cast<size_t>(prompt_length);
}

// Why a node's cache is not what a header assumes.
enum class MissReason { kUnknownIncarnation, kStale, kLength, kPrefix };
inline constexpr MissReason kMissReasons[] = {
    MissReason::kUnknownIncarnation, MissReason::kStale, MissReason::kLength,
    MissReason::kPrefix};

// The name that the protos have for it, and metrics.
inline const char* NameOf(MissReason reason) {
  constexpr const char* kNames[] = {"unknown_incarnation", "stale", "length",
                                    "prefix"};
  return kNames[static_cast<int>(reason)];
}

// An ordinary answer, not an error: the coordinator sends what is missing.
struct Miss {
  MissReason reason = MissReason::kUnknownIncarnation;
  int cached_length = 0;
};

// What every answer begins with: an echo, so that a late one is recognised.
struct ReplyHeader {
  SessionId session = {};
  Incarnation incarnation = {};
  uint64_t step = 0;
  int cached_length = 0;
  double compute_seconds = 0;
  double own_seconds = 0;    // of those, for its own rows; 0: is not known
  double queue_seconds = 0;  // that it waited at the node; 0: or is not known
  // The node may be sent the next moved stream in so long; negative: since so
  // long. Nothing: is not known.
  std::optional<double> next_reprefill_in = {};
  int reused_length = 0;     // leading tokens that another session had cached
  bool is_draining = false;  // the session should go on at another node
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_CACHE_DELTA_H_
