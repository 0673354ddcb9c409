// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_NODE_SESSION_H_
#define OUTRIDER_CORE_SESSION_NODE_SESSION_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/kv_block.h"
#include "core/base/session_id.h"
#include "core/session/token_log.h"

namespace outrider {

// A wish to let the text of a session go on from its first `length` tokens in
// another way, up to `max_length`, for the time of a call.
struct Fork {
  int length = 0;
  int max_length = 0;
};

// A text that does. What it begins with lies in the session's own full blocks;
// the rest of that beginning it copies.
struct Branch {
  std::vector<KvBlockId> blocks = {};
  int length = 0;  // tokens whose keys and values the blocks hold
  // The session's block that its first own one is still to be a copy of.
  std::optional<KvBlockId> copied_block = {};

  // A pass has run its next token.
  void Extended() {
    copied_block.reset();
    ++length;
  }
};

// One session of a node: what its cache holds, and in which blocks. While a
// call is at work, it is that call's own; otherwise it belongs to NodeSessions,
// which alone changes it.
struct NodeSession {
  using Clock = std::chrono::steady_clock;

  explicit NodeSession(const SessionId& session) : id(session), log(session) {}

  // Its next call is there. Who waits for room, or was refused and comes again,
  // has been back before.
  void NoteReturn(Clock::time_point now) {
    if (std::exchange(has_returned, true)) return;
    // A long rest says nothing of the sessions' usual way round.
    const Clock::duration time = now - last_end;
    if (time <= std::chrono::seconds(1)) {
      usual_return = (usual_return + time) / 2;
    }
  }

  const SessionId id;
  // The tokens whose keys and values the blocks hold. Its length is the one
  // length that there is: the cache's.
  TokenLog log;
  // There are as many as the length needs between calls, and as many as the
  // round may need during one. Other sessions may own the first of them, too.
  std::vector<KvBlockId> blocks = {};
  std::vector<Branch> branches = {};  // of the call at work
  Incarnation incarnation = {};
  // The time from the end of a call to the next one, on average.
  Clock::duration usual_return = {};
  bool had_no_memory = false;  // the pass of its last call
  bool is_doubtful = false;    // what its last call left, as Work says

  // Kept by NodeSessions.
  std::optional<std::string> salt = {};  // empty: shares with nobody
  int settled_length = 0;  // tokens that no call or retry will cut
  uint64_t opening_step = 0;
  uint64_t last_step = 0;
  uint64_t last_digest = 0;
  uint64_t age_rank = 0;            // rises with every session that is opened
  Clock::time_point last_end = {};  // of a call
  bool has_returned = false;        // with the next one since then
  Clock::time_point last_use = {};  // begins the lease
  bool is_at_work = false;
  bool begins_anew = false;   // at work: it computes the text from 0 on
  bool may_give_way = false;  // the same, and its stream has not begun
  // To one that has, and waits here: its call ends between passes.
  std::optional<SessionId> gives_way_to = {};
  bool is_released = false;                      // goes when its call ends
  bool is_over = false;                          // and its text with it
  std::list<NodeSession*>::iterator place = {};  // among the idle ones
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_NODE_SESSION_H_
