// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_SESSION_TABLE_H_
#define OUTRIDER_CORE_SESSION_SESSION_TABLE_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/session_id.h"
#include "core/session/cache_delta.h"
#include "core/session/released_openings.h"
#include "core/session/token_log.h"

namespace outrider {

// A node's sessions: what each cache holds, which incarnation lives and which
// step it saw last. Admits or refuses a header before the model sees it, by the
// table in proto/README.md. Confined to the model's thread.
class SessionTable {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    int max_sessions = 256;     // beyond, the longest idle one is evicted
    int max_cached_tokens = 0;  // over all sessions; 0: no limit of its own
    std::chrono::seconds lease = std::chrono::seconds(30);  // since last use
  };

  // A header that passed. `evicted` sessions made room: release their caches.
  struct Admission {
    Incarnation incarnation = {};
    int keep_length = 0;
    std::vector<SessionId> evicted = {};
  };

  explicit SessionTable(Options options) : options_(options) {}

  // `content_digest` identifies the request's bytes; `num_draft_tokens` go into
  // the cache besides the delta. INVALID_ARGUMENT where one step comes with two
  // contents or the delta is impossible, RESOURCE_EXHAUSTED where the session
  // alone is larger than the whole cache. After an Admission the caller runs
  // the model and then calls Record or Drop.
  absl::StatusOr<std::variant<Admission, Miss>> Admit(
      const RequestHeader& header, uint64_t content_digest,
      int num_draft_tokens, Clock::time_point now);

  // The session's cache now holds keep_length old tokens and these.
  void Record(const SessionId& session, int keep_length,
              absl::Span<const TokenId> appended);
  // Forgets the session (its cache is gone, or must go).
  void Drop(const SessionId& session);

  // Advisory cut and release: false, and no effect, where the step is behind
  // the last one seen or the incarnation is not the live one.
  bool Truncate(const RequestHeader& header, int length);
  // Without an incarnation: for who gave an opening up before its answer. The
  // live session of whatever incarnation goes, and an opening that arrives
  // behind its release, no later than this step, is stale.
  bool Release(const RequestHeader& header);

  // Removes the sessions whose lease has run out and returns them.
  std::vector<SessionId> Expire(Clock::time_point now);

  int num_sessions() const { return static_cast<int>(sessions_.size()); }
  int num_cached_tokens() const { return num_cached_tokens_; }
  // 0 for an unknown session.
  int CachedLength(const SessionId& session) const;
  // The tokens that the cache holds; nullptr for an unknown session.
  const TokenLog* Tokens(const SessionId& session) const;

 private:
  struct Entry {
    explicit Entry(const SessionId& session) : log(session) {}
    TokenLog log;
    Incarnation incarnation = {};
    uint64_t opening_step = 0;
    uint64_t last_step = 0;
    uint64_t last_digest = 0;
    Clock::time_point last_use = {};
    std::list<SessionId>::iterator place = {};  // in idle_order_
  };

  std::variant<Admission, Miss> AdmitOpen(const RequestHeader& header,
                                          uint64_t content_digest);
  std::optional<Miss> CheckLive(const RequestHeader& header,
                                const Entry& entry) const;
  std::vector<SessionId> MakeRoom(const SessionId& keep, int num_tokens);

  const Options options_;
  absl::flat_hash_map<SessionId, Entry> sessions_;
  ReleasedOpenings released_;
  std::list<SessionId> idle_order_;  // longest idle first
  int num_cached_tokens_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_SESSION_TABLE_H_
