// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_NODE_SESSIONS_H_
#define OUTRIDER_CORE_SESSION_NODE_SESSIONS_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/session_id.h"
#include "core/session/cache_delta.h"
#include "core/session/node_session.h"
#include "core/session/released_openings.h"
#include "core/session/session_blocks.h"

namespace outrider {

// A node's sessions and the KV blocks that they own: admits or refuses a header
// by the table in proto/README.md, and reserves what its round needs. Confined
// to the scheduler. A session is live until its lease has run out or it was
// released. Texts of new streams give way to one that has begun; else no live
// session is evicted for a newcomer. For a live one's round younger ones are
// preempted between theirs, cut to nothing: so the oldest goes on.
class NodeSessions {
 public:
  using Clock = NodeSession::Clock;

  struct Options {
    int num_blocks = 0;
    int max_sessions = 4096;         // openings beyond are refused
    std::chrono::seconds lease{30};  // since the last use
    PrefixSharing sharing = PrefixSharing::kSalted;
    bool blocks_are_text = false;  // ModelInfo: to share them saves no memory
  };

  // Its blocks are held by sessions at work: ask again when one has ended.
  struct Wait {
    bool comes_soon = false;  // rounds hold enough, or what gives way to it
  };
  // The session, now at work: EndRound or Drop ends that.
  using Outcome = std::variant<NodeSession*, Miss, Wait>;

  explicit NodeSessions(Options options)
      : options_(options), blocks_(options.num_blocks, options.sharing) {}

  // The session must not be at work. Its log may go on after keep_length, with
  // tokens of the delta that were cached before.
  // INVALID_ARGUMENT: one step with two contents, or an impossible delta.
  // RESOURCE_EXHAUSTED: no room now, and when to try again; without a delay, it
  // never fits. Who lacks room has its lease renewed, and texts may give way.
  absl::StatusOr<Outcome> Admit(const SessionCall& call, Clock::time_point now);

  // A pass has run these after what the cache held.
  void Extended(NodeSession& session, absl::Span<const TokenId> tokens);
  void TakeBack(NodeSession& session, int length);  // the round's blocks stay
  // Branches for the first of the forks, as many as there is room for beside
  // what others may need soon, and how many: they end with the call.
  int MakeBranches(NodeSession& session, absl::Span<const Fork> forks);
  // The call has ended: blocks beyond the length are free, the lease begins.
  void EndRound(NodeSession& session, Clock::time_point now);
  // Forgets it; with Discard what others may have of it, too: it may be wrong.
  void Drop(NodeSession& session);
  void Discard(NodeSession& session);
  void GaveWay() { ++num_preempted_; }  // a text that was to, and is dropped

  // Advisory cut and release: false, and no effect, where the step is before
  // the last one or the incarnation not the live one. One at work is not cut,
  // and goes when its call ends. Without incarnation an opening is released.
  bool Truncate(const RequestHeader& header, int length);
  bool Release(const RequestHeader& header);
  // A call of the session has come, waits or was refused: a lease begins anew.
  void Renew(const SessionId& session, Clock::time_point now);
  void Expire(Clock::time_point now);  // drops those whose lease has run out

  const NodeSession* Find(const SessionId& session) const;  // or nullptr
  // RESOURCE_EXHAUSTED with a retry delay of 50 to 1000 ms.
  absl::Status TryLater(absl::string_view what);

  int num_sessions() const { return static_cast<int>(sessions_.size()); }
  int64_t num_cached_tokens() const { return blocks_.num_cached_tokens(); }
  int num_preempted() const { return num_preempted_; }  // so far
  const KvBlockPool& blocks() const { return blocks_.pool(); }
  bool IsConsistent() const;      // the invariants hold; for tests
  int64_t num_looked_at() const;  // blocks, in search of room; for tests

 private:
  enum class Room { kIsThere, kComesSoon, kComesLater };
  class RoomSearch;
  std::optional<Miss> CheckOpening(const RequestHeader& header, uint64_t digest,
                                   const NodeSession* session) const;
  std::optional<Miss> CheckLive(const RequestHeader& header,
                                const NodeSession* session) const;
  // Makes so many free beside the prefix, once the session is cut.
  absl::StatusOr<Room> MakeRoom(const SessionCall& call, int num_blocks,
                                absl::Span<const KvBlockId> prefix,
                                const NodeSession* session,
                                Clock::time_point now);
  NodeSession& Open(const RequestHeader& header, NodeSession* session);
  NodeSession* FindMutable(const SessionId& session);

  const Options options_;
  SessionBlocks blocks_;
  absl::flat_hash_map<SessionId, std::unique_ptr<NodeSession>> sessions_;
  ReleasedOpenings released_openings_;
  std::list<NodeSession*> idle_;  // not at work, longest idle first
  int num_preempted_ = 0;
  uint64_t num_opened_ = 0;
  bool may_any_give_way_ = false;  // some session may have gives_way_to
  std::minstd_rand jitter_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_NODE_SESSIONS_H_
