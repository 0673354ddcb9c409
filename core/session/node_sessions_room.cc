// SPDX-License-Identifier: Apache-2.0
// Of NodeSessions: who makes room for whom, and whose time is over.
#include <algorithm>
#include <chrono>
#include <list>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/mutant.h"
#include "core/session/free_block_count.h"
#include "core/session/node_sessions.h"

namespace outrider {
namespace {

using Sessions = std::vector<NodeSession*>;

bool IsExpired(const NodeSession& idle, std::chrono::seconds lease,
               NodeSession::Clock::time_point now) {
  return now - idle.last_use > lease;
}

// What a session gives that is cut to this length.
absl::Span<const KvBlockId> GivenBy(const NodeSession* session,
                                    int keep_length) {
  if (session == nullptr) return {};
  const auto all = absl::MakeConstSpan(session->blocks);
  return all.subspan(std::min<size_t>(NumKvBlocks(keep_length), all.size()));
}

// What a session gives that is cut to nothing, or whose call ends and is.
void GiveAll(const NodeSession& session, FreeBlockCount& count) {
  count.GiveBack(session.blocks);
  for (const Branch& branch : session.branches) count.GiveBack(branch.blocks);
}

void SortYoungestFirst(Sessions& sessions) {
  std::sort(sessions.begin(), sessions.end(), [](const auto* a, const auto* b) {
    return a->age_rank > b->age_rank;
  });
}

// The sessions that are younger than one that needs room; for a newcomer all.
struct Others {
  Sessions at_rest = {};  // that have blocks
  // The same, and those of rounds, which end soon: a text that is computed from
  // its beginning does not.
  Sessions soon_at_rest = {};
  Sessions texts = {};  // that may give way
  bool is_any_at_work = false;

  void Add(NodeSession& session) {
    is_any_at_work = is_any_at_work || session.is_at_work;
    if (session.is_at_work && session.may_give_way) texts.push_back(&session);
    if (session.blocks.empty()) return;
    if (session.is_at_work && session.begins_anew) return;
    soon_at_rest.push_back(&session);
    if (!session.is_at_work) at_rest.push_back(&session);
  }
};

}  // namespace

// Where the blocks of one call come from.
class NodeSessions::RoomSearch {
 public:
  // No session: a newcomer.
  RoomSearch(NodeSessions& node, const SessionCall& call, int num_blocks,
             absl::Span<const KvBlockId> prefix, const NodeSession* session)
      : node_(node),
        call_(call),
        num_blocks_(num_blocks),
        prefix_(prefix),
        session_(session),
        num_left_(NumLeft()),
        own_(GivenBy(session, call.header.delta.keep_length)) {}

  bool HasRoom() const { return HasRoomWith(/*num_coming=*/0); }
  // What branches have comes free in a few passes.
  bool BranchesHaveRoom() const {
    const int num_coming = node_.blocks_.num_branch_blocks();
    return num_coming > 0 && HasRoomWith(num_coming);
  }
  // Drops those whose lease has run out, the longest idle first, until there is
  // room.
  void DropExpired(Clock::time_point now);
  // Takes room from the sessions that are younger, or says when they give it.
  absl::StatusOr<Room> AskOthers();
  // What was to give way to the session goes on, unless AskOthers wants it.
  void NobodyGivesWay();

 private:
  bool is_newcomer() const { return session_ == nullptr; }
  const SessionId& id() const { return call_.header.session; }
  int NumLeft() const;
  bool HasRoomWith(int num_coming) const;
  // Begins to count what is free once the session is cut to what it keeps, and
  // has what it begins with.
  FreeBlockCount& CountFree() const;
  bool IsEnough(const FreeBlockCount& count) const {
    return count.num_free() >= num_blocks_ + num_left_;
  }
  bool AreEnough(const Sessions& coming) const;
  Sessions YoungestThatGive(Sessions candidates, const Sessions& coming) const;
  bool LetTextsGiveWay(const Others& others);
  Others FindOthers() const;
  void Preempt(const Sessions& victims);

  NodeSessions& node_;
  const SessionCall& call_;
  const int num_blocks_;
  const absl::Span<const KvBlockId> prefix_;  // that it begins with
  const NodeSession* const session_;
  int num_left_;                           // blocks that stay free
  const absl::Span<const KvBlockId> own_;  // that the session itself gives
};

// Each of the others may need another block in its next round, and a newcomer
// leaves them that. What has begun elsewhere waits for these no more than a
// session of this node does. One that was preempted leaves it to those that are
// older: else it would take the first blocks that do for its text, which these
// need in a few rounds, and be preempted for them, each time for a text's work
// and few tokens.
//
// So every stream comes to its end. The oldest session leaves nothing: once the
// others are at rest it has what it needs, be it all that there is. Texts of
// new streams give way to it. Of the others, whoever is let in before commits a
// token, unless its pass fails, and has only so many to go. So in time the
// oldest has ended, or its lease has, as it does not come. Then another one is
// the oldest, and leaves nothing.
int NodeSessions::RoomSearch::NumLeft() const {
  if (is_newcomer()) return call_.holds_up_stream ? 0 : node_.num_sessions();
  if (!session_->blocks.empty()) return 0;
  const auto num_older =
      std::count_if(node_.sessions_.begin(), node_.sessions_.end(),
                    [this](const auto& entry) {
                      return entry.second->age_rank < session_->age_rank;
                    });
  // The longest text need not wait until it is the oldest: it is let in where
  // no older session has any blocks beside its own.
  const int num_all = node_.blocks().num_total();
  const auto num_own = num_blocks_ + static_cast<int>(prefix_.size());
  return std::min(static_cast<int>(num_older), num_all - num_own);
}

bool NodeSessions::RoomSearch::HasRoomWith(int num_coming) const {
  if (is_newcomer() && node_.num_sessions() >= node_.options_.max_sessions) {
    return false;
  }
  const int num_free = CountFree().num_free() + num_coming;
  return num_free >= num_blocks_ + num_left_;
}

FreeBlockCount& NodeSessions::RoomSearch::CountFree() const {
  FreeBlockCount& count = node_.blocks_.free_count();
  count.Begin();
  count.Share(prefix_);
  count.GiveBack(own_);
  return count;
}

bool NodeSessions::RoomSearch::AreEnough(const Sessions& coming) const {
  FreeBlockCount& count = CountFree();
  for (const NodeSession* one : coming) GiveAll(*one, count);
  return IsEnough(count);
}

// Chooses as many as give enough beside what comes, the youngest first, and
// none where all are too few.
Sessions NodeSessions::RoomSearch::YoungestThatGive(
    Sessions candidates, const Sessions& coming) const {
  Sessions all = coming;
  all.insert(all.end(), candidates.begin(), candidates.end());
  if (!AreEnough(all)) return {};
  SortYoungestFirst(candidates);
  FreeBlockCount& count = CountFree();
  for (const NodeSession* one : coming) GiveAll(*one, count);
  size_t num_chosen = 0;
  while (num_chosen < candidates.size()) {
    GiveAll(*candidates[num_chosen++], count);
    if (IsEnough(count)) break;
  }
  candidates.resize(num_chosen);
  return candidates;
}

// Where a stream that has begun, here or elsewhere, needs room, texts of those
// that have not give way, and none that has begun is preempted for it. No two
// texts end each other: only what has begun ends any, and no such text is
// ended. What is computed of one is found again when it comes back. False: no
// texts are to give way, as all are too few, or as rounds that end soon give a
// session of this node enough. Where a newcomer lacks but a place among the
// sessions, the youngest gives way.
bool NodeSessions::RoomSearch::LetTextsGiveWay(const Others& others) {
  if (others.texts.empty()) return false;
  Sessions chosen = YoungestThatGive(others.texts, /*coming=*/{});
  if (chosen.empty() && !is_newcomer() && !AreEnough(others.soon_at_rest)) {
    chosen = YoungestThatGive(others.texts, others.soon_at_rest);
  }
  for (NodeSession* text : chosen) text->gives_way_to = id();
  return !chosen.empty();
}

void NodeSessions::RoomSearch::DropExpired(Clock::time_point now) {
  std::list<NodeSession*>& idle = node_.idle_;
  for (auto next = idle.begin(); next != idle.end() && !HasRoom();) {
    NodeSession& one = **next++;
    if (!IsExpired(one, node_.options_.lease, now)) return;
    if (&one == session_) continue;
    node_.Drop(one);
    num_left_ = NumLeft();
  }
}

Others NodeSessions::RoomSearch::FindOthers() const {
  Others others;
  for (const auto& [id, other] : node_.sessions_) {
    if (is_newcomer() || other->age_rank > session_->age_rank) {
      others.Add(*other);
    }
  }
  return others;
}

absl::StatusOr<NodeSessions::Room> NodeSessions::RoomSearch::AskOthers() {
  if (call_.is_ahead) {
    return node_.TryLater("this node's KV cache has no room for guesses");
  }
  const bool leaves_all = is_newcomer() && !call_.holds_up_stream;
  const Others others = leaves_all ? Others() : FindOthers();
  if (call_.holds_up_stream && LetTextsGiveWay(others)) {
    node_.may_any_give_way_ = true;
    return Room::kComesSoon;
  }
  if (is_newcomer()) {
    return node_.TryLater(node_.num_sessions() >= node_.options_.max_sessions
                              ? "this node has all the sessions it may have"
                              : "this node's KV cache is full");
  }
  const Sessions victims = YoungestThatGive(others.at_rest, /*coming=*/{});
  if (!victims.empty()) {
    Preempt(victims);
    return Room::kIsThere;
  }
  if (AreEnough(others.soon_at_rest)) return Room::kComesSoon;
  if (others.is_any_at_work) return Room::kComesLater;
  return node_.TryLater("this node's KV cache is full of older sessions");
}

void NodeSessions::RoomSearch::NobodyGivesWay() {
  // Texts seldom do: else each call would go through all sessions.
  if (!std::exchange(node_.may_any_give_way_, false)) return;
  for (const auto& [session, other] : node_.sessions_) {
    if (other->gives_way_to == id()) other->gives_way_to.reset();
    if (other->gives_way_to.has_value()) node_.may_any_give_way_ = true;
  }
}

void NodeSessions::RoomSearch::Preempt(const Sessions& victims) {
  for (NodeSession* victim : victims) {
    ++node_.num_preempted_;
    node_.blocks_.KeepFirst(*victim, 0);
    node_.blocks_.Cut(*victim, OUTRIDER_MUTANT(E4, 0, victim->log.length()));
  }
}

absl::StatusOr<NodeSessions::Room> NodeSessions::MakeRoom(
    const SessionCall& call, int num_blocks, absl::Span<const KvBlockId> prefix,
    const NodeSession* session, Clock::time_point now) {
  RoomSearch search(*this, call, num_blocks, prefix, session);
  search.NobodyGivesWay();
  search.DropExpired(now);
  if (search.HasRoom()) return Room::kIsThere;
  if (!call.is_ahead && search.BranchesHaveRoom()) return Room::kComesSoon;
  return search.AskOthers();
}

void NodeSessions::Renew(const SessionId& id, Clock::time_point now) {
  NodeSession* session = FindMutable(id);
  if (session == nullptr || session->is_at_work) return;
  session->NoteReturn(now);
  session->last_use = now;
  idle_.splice(idle_.end(), idle_, session->place);
}

void NodeSessions::Expire(Clock::time_point now) {
  while (!idle_.empty() && IsExpired(*idle_.front(), options_.lease, now)) {
    Drop(*idle_.front());
  }
}

}  // namespace outrider
