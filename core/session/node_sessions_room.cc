// SPDX-License-Identifier: Apache-2.0
// Of NodeSessions: who makes room for whom, and whose time is over.
#include <algorithm>
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
  // give a session of this node enough.
  bool LetTextsGiveWay(bool for_newcomer, IsEnough is_enough) const {
    std::vector<NodeSession*> chosen = TextsThatGive({}, is_enough);
    if (chosen.empty() && !for_newcomer && !is_enough(blocks)) {
      chosen = TextsThatGive(blocks, is_enough);
    }
    for (NodeSession* text : chosen) text->gives_way = true;
    return !chosen.empty();
  }
};

}  // namespace

absl::StatusOr<NodeSessions::Room> NodeSessions::MakeRoom(
    const SessionCall& call, int num_blocks, const NodeSession* session,
    Clock::time_point now) {
  const std::vector<KvBlockId> own =
      GivenBy(session, call.header.delta.keep_length);
  const auto num_free = [&](const std::vector<KvBlockId>& coming) {
    return blocks().num_free() + blocks().NumFreedBy(coming);
  };
  const bool is_newcomer = session == nullptr;
  // Each of the others may need another block in its next round. What has begun
  // elsewhere waits for these no more than a session of this node does.
  const int num_left =
      is_newcomer && !call.holds_up_stream ? num_sessions() : 0;
  const auto has = [&](int num) {
    return (!is_newcomer || num_sessions() < options_.max_sessions) &&
           num >= num_blocks + num_left;
  };
  for (auto next = idle_.begin(); next != idle_.end() && !has(num_free(own));) {
    NodeSession& idle = **next++;
    if (!IsExpired(idle, now)) break;
    if (&idle != session) Drop(idle);
  }
  if (has(num_free(own))) return Room::kIsThere;
  // What branches have comes free in a few passes.
  const int num_coming = blocks_.num_branch_blocks();
  if (num_coming > 0 && has(num_free(own) + num_coming)) {
    return Room::kComesSoon;
  }

  Others others;
  for (const auto& [id, other] : sessions_) {
    if (is_newcomer || other->age_rank > session->age_rank) others.Add(*other);
  }
  const auto is_enough = [&](const std::vector<KvBlockId>& coming) {
    return num_free(Joined(own, coming)) >= num_blocks;
  };
  const bool may_preempt = !is_newcomer && is_enough(others.blocks_at_rest);
  const bool comes_soon = !is_newcomer && is_enough(others.blocks);
  if (call.holds_up_stream && others.LetTextsGiveWay(is_newcomer, is_enough)) {
    return Room::kComesSoon;
  }
  if (is_newcomer) {
    return TryLater(num_sessions() >= options_.max_sessions
                        ? "this node has all the sessions it may have"
                        : "this node's KV cache is full");
  }
  if (!may_preempt) {
    if (comes_soon) return Room::kComesSoon;
    if (others.is_any_at_work) return Room::kComesLater;
    return TryLater("this node's KV cache is full of older sessions");
  }
  for (NodeSession* victim : YoungestFirst(others.at_rest)) {
    if (num_free(own) >= num_blocks) break;
    ++num_preempted_;
    blocks_.KeepFirst(*victim, 0);
    blocks_.Cut(*victim, OUTRIDER_MUTANT(E4, 0, victim->log.length()));
  }
  return Room::kIsThere;
}

bool NodeSessions::IsExpired(const NodeSession& idle,
                             Clock::time_point now) const {
  return now - idle.last_use > options_.lease;
}

void NodeSessions::Renew(const SessionId& id, Clock::time_point now) {
  NodeSession* session = FindMutable(id);
  if (session == nullptr || session->is_at_work) return;
  session->last_use = now;
  idle_.splice(idle_.end(), idle_, session->place);
}

void NodeSessions::Expire(Clock::time_point now) {
  while (!idle_.empty() && IsExpired(*idle_.front(), now)) {
    Drop(*idle_.front());
  }
}

}  // namespace outrider
