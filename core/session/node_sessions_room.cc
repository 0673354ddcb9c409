// SPDX-License-Identifier: Apache-2.0
// Of NodeSessions: who makes room for whom, and whose time is over.
#include <algorithm>
#include <chrono>
#include <list>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/base/mutant.h"
#include "core/session/node_sessions.h"

namespace outrider {
namespace {

std::vector<KvBlockId> Joined(std::vector<KvBlockId> blocks,
                              const std::vector<KvBlockId>& more) {
  blocks.insert(blocks.end(), more.begin(), more.end());
  return blocks;
}

bool IsExpired(const NodeSession& idle, std::chrono::seconds lease,
               NodeSession::Clock::time_point now) {
  return now - idle.last_use > lease;
}

// What a session gives that is cut to this length.
std::vector<KvBlockId> GivenBy(const NodeSession* session, int keep_length) {
  if (session == nullptr) return {};
  const std::vector<KvBlockId>& all = session->blocks;
  const size_t num_kept = NumKvBlocks(keep_length);
  return {all.begin() + std::min(num_kept, all.size()), all.end()};
}

std::vector<NodeSession*> YoungestFirst(std::vector<NodeSession*> sessions) {
  std::sort(sessions.begin(), sessions.end(), [](const auto* a, const auto* b) {
    return a->age_rank > b->age_rank;
  });
  return sessions;
}

// Whether these blocks, once free, are enough beside those that are.
using IsEnough = absl::FunctionRef<bool(const std::vector<KvBlockId>&)>;

// The sessions that are younger than one that needs room; for a newcomer all.
struct Others {
  std::vector<NodeSession*> at_rest = {};      // that have blocks
  std::vector<KvBlockId> blocks_at_rest = {};  // theirs
  // The same, and those of rounds, which end soon: a text that is computed from
  // its beginning does not.
  std::vector<KvBlockId> blocks = {};
  std::vector<NodeSession*> texts = {};  // that may give way
  bool is_any_at_work = false;

  void Add(NodeSession& session) {
    is_any_at_work = is_any_at_work || session.is_at_work;
    if (session.is_at_work && session.may_give_way) texts.push_back(&session);
    if (session.is_at_work && session.begins_anew) return;
    blocks = Joined(std::move(blocks), session.blocks);
    for (const Branch& branch : session.branches) {
      blocks = Joined(std::move(blocks), branch.blocks);
    }
    if (session.is_at_work || session.blocks.empty()) return;
    blocks_at_rest = Joined(std::move(blocks_at_rest), session.blocks);
    at_rest.push_back(&session);
  }
  // Chooses as many texts as give enough beside what comes, the youngest first,
  // and none where all are too few.
  std::vector<NodeSession*> TextsThatGive(std::vector<KvBlockId> coming,
                                          IsEnough is_enough) const {
    std::vector<NodeSession*> chosen;
    for (NodeSession* text : YoungestFirst(texts)) {
      chosen.push_back(text);
      coming = Joined(std::move(coming), text->blocks);
      if (is_enough(coming)) return chosen;
    }
    return {};
  }
  // Where a stream that has begun, here or elsewhere, needs room, texts of
  // those that have not give way, and none that has begun is preempted for it.
  // No two texts end each other: only what has begun ends any, and no such text
  // is ended. What is computed of one is found again when it comes back. False:
  // no texts are to give way, as all are too few, or as rounds that end soon
  // give a session of this node enough. Where a newcomer lacks but a place
  // among the sessions, the youngest gives way.
  bool LetTextsGiveWay(const SessionId& to, bool is_newcomer,
                       IsEnough is_enough) const {
    std::vector<NodeSession*> chosen = TextsThatGive({}, is_enough);
    if (chosen.empty() && !is_newcomer && !is_enough(blocks)) {
      chosen = TextsThatGive(blocks, is_enough);
    }
    for (NodeSession* text : chosen) text->gives_way_to = to;
    return !chosen.empty();
  }
};

}  // namespace

// Where the blocks of one call come from.
class NodeSessions::RoomSearch {
 public:
  // No session: a newcomer.
  RoomSearch(NodeSessions& node, const SessionCall& call, int num_blocks,
             const NodeSession* session)
      : node_(node),
        id_(call.header.session),
        session_(session),
        num_blocks_(num_blocks),
        holds_up_stream_(call.holds_up_stream),
        num_left_(session == nullptr && !call.holds_up_stream
                      ? node.num_sessions()
                      : 0),
        own_(GivenBy(session, call.header.delta.keep_length)) {}

  bool HasRoom() const { return HasRoom(NumFree({})); }
  // What branches have comes free in a few passes.
  bool BranchesHaveRoom() const {
    const int num_coming = node_.blocks_.num_branch_blocks();
    return num_coming > 0 && HasRoom(NumFree({}) + num_coming);
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
  int NumFree(const std::vector<KvBlockId>& coming) const {
    const KvBlockPool& pool = node_.blocks();
    return pool.num_free() + pool.NumFreedBy(Joined(own_, coming));
  }
  bool HasRoom(int num_free) const;
  Others FindOthers() const;
  void Preempt(std::vector<NodeSession*> victims);

  NodeSessions& node_;
  const SessionId id_;
  const NodeSession* const session_;
  const int num_blocks_;
  const bool holds_up_stream_;
  // Each of the others may need another block in its next round. What has begun
  // elsewhere waits for these no more than a session of this node does.
  const int num_left_;
  const std::vector<KvBlockId> own_;  // that the session itself gives
};

bool NodeSessions::RoomSearch::HasRoom(int num_free) const {
  if (is_newcomer() && node_.num_sessions() >= node_.options_.max_sessions) {
    return false;
  }
  return num_free >= num_blocks_ + num_left_;
}

void NodeSessions::RoomSearch::DropExpired(Clock::time_point now) {
  std::list<NodeSession*>& idle = node_.idle_;
  for (auto next = idle.begin(); next != idle.end() && !HasRoom();) {
    NodeSession& one = **next++;
    if (!IsExpired(one, node_.options_.lease, now)) return;
    if (&one != session_) node_.Drop(one);
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
  const Others others = FindOthers();
  const auto is_enough = [&](const std::vector<KvBlockId>& coming) {
    return NumFree(coming) >= num_blocks_;
  };
  if (holds_up_stream_ &&
      others.LetTextsGiveWay(id_, is_newcomer(), is_enough)) {
    node_.may_any_give_way_ = true;
    return Room::kComesSoon;
  }
  if (is_newcomer()) {
    return node_.TryLater(node_.num_sessions() >= node_.options_.max_sessions
                              ? "this node has all the sessions it may have"
                              : "this node's KV cache is full");
  }
  if (is_enough(others.blocks_at_rest)) {
    Preempt(others.at_rest);
    return Room::kIsThere;
  }
  if (is_enough(others.blocks)) return Room::kComesSoon;
  if (others.is_any_at_work) return Room::kComesLater;
  return node_.TryLater("this node's KV cache is full of older sessions");
}

void NodeSessions::RoomSearch::NobodyGivesWay() {
  // Texts seldom do: else each call would go through all sessions.
  if (!std::exchange(node_.may_any_give_way_, false)) return;
  for (const auto& [id, other] : node_.sessions_) {
    if (other->gives_way_to == id_) other->gives_way_to.reset();
    if (other->gives_way_to.has_value()) node_.may_any_give_way_ = true;
  }
}

void NodeSessions::RoomSearch::Preempt(std::vector<NodeSession*> victims) {
  for (NodeSession* victim : YoungestFirst(std::move(victims))) {
    if (NumFree({}) >= num_blocks_) return;
    ++node_.num_preempted_;
    node_.blocks_.KeepFirst(*victim, 0);
    node_.blocks_.Cut(*victim, OUTRIDER_MUTANT(E4, 0, victim->log.length()));
  }
}

absl::StatusOr<NodeSessions::Room> NodeSessions::MakeRoom(
    const SessionCall& call, int num_blocks, const NodeSession* session,
    Clock::time_point now) {
  RoomSearch search(*this, call, num_blocks, session);
  search.NobodyGivesWay();
  search.DropExpired(now);
  if (search.HasRoom()) return Room::kIsThere;
  if (search.BranchesHaveRoom()) return Room::kComesSoon;
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
