// SPDX-License-Identifier: Apache-2.0
#include "core/session/node_sessions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/mutant.h"
#include "core/base/retry_delay.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// A session's text is kept once for each, whoever shares its blocks. An opening
// is refused where they would have more than so many times the tokens that fit
// into all blocks, once where these are but the text; live ones may go beyond.
constexpr int64_t kMostTimesShared = 32;

int NumBlocks(const NodeSession* session) {
  return session == nullptr ? 0 : static_cast<int>(session->blocks.size());
}

// The cache that a call's round needs.
int LengthWantedBy(const SessionCall& call) {
  return static_cast<int>(call.header.delta.length()) + call.num_draft_tokens;
}

absl::Status CheckFits(int wanted_length, const KvBlockPool& blocks) {
  if (NumKvBlocks(wanted_length) <= blocks.num_total()) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the session needs a cache of ", wanted_length, " tokens, this node has ",
      int64_t{blocks.num_total()} * kKvBlockLength,
      " for all sessions together"));
}

absl::Status CheckKeepLength(const RequestHeader& header) {
  const int keep_length = header.delta.keep_length;
  if (!header.incarnation.is_none() || keep_length == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a request without incarnation opens the session: "
                   "keep_length must be 0, not ",
                   keep_length));
}

// One step has one content.
absl::Status CheckContent(const RequestHeader& header, uint64_t digest,
                          const NodeSession* session) {
  const bool is_other = !header.incarnation.is_none() &&
                        header.step == session->last_step &&
                        digest != session->last_digest;
  if (!is_other) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("step ", header.step, " came before with another content"));
}

// It has the blocks of the call's round, and is at work from now on.
void BeginRound(const SessionCall& call, NodeSession& session) {
  const CacheDelta& delta = call.header.delta;
  session.begins_anew = delta.keep_length == 0;
  // A retry of this call cuts to keep_length again, which within a block would
  // be a miss; 0 is at a block's beginning.
  session.settled_length = session.begins_anew
                               ? static_cast<int>(delta.append_tokens.size())
                               : delta.keep_length;
  session.last_step = call.header.step;
  session.last_digest = call.content_digest;
  session.is_at_work = true;
  session.may_give_way = session.begins_anew && !call.holds_up_stream;
}

}  // namespace

absl::StatusOr<NodeSessions::Outcome> NodeSessions::Admit(
    const SessionCall& call, Clock::time_point now) {
  const RequestHeader& header = call.header;
  const int keep_length = header.delta.keep_length;
  const std::vector<TokenId>& appended = header.delta.append_tokens;
  const int wanted_length = LengthWantedBy(call);
  OUTRIDER_RETURN_IF_ERROR(CheckFits(wanted_length, blocks()));
  NodeSession* session = FindMutable(header.session);
  OUTRIDER_CHECK(session == nullptr || !session->is_at_work);

  const bool opens = header.incarnation.is_none();
  const int64_t most_times = options_.blocks_are_text ? 1 : kMostTimesShared;
  if (opens && session == nullptr &&
      num_cached_tokens() + wanted_length >
          most_times * kKvBlockLength * blocks().num_total()) {
    return TryLater("the texts of this node's sessions take too much memory");
  }
  OUTRIDER_RETURN_IF_ERROR(CheckKeepLength(header));
  const std::optional<Miss> miss =
      opens ? CheckOpening(header, call.content_digest, session)
            : CheckLive(header, session);
  if (miss.has_value()) return *miss;
  OUTRIDER_RETURN_IF_ERROR(CheckContent(header, call.content_digest, session));

  std::vector<KvBlockId> prefix;
  if (keep_length == 0) {
    prefix = blocks_.FindPrefix(
        opens ? blocks_.SaltOf(header.cache_salt) : session->salt, appended);
  }
  const int num_kept = std::min(NumKvBlocks(keep_length), NumBlocks(session));
  const int num_new =
      NumKvBlocks(wanted_length) - num_kept - static_cast<int>(prefix.size());
  const auto room = MakeRoom(call, num_new, prefix, session, now);
  if (!room.ok() || *room != Room::kIsThere) {
    // Also who is refused comes again, and keeps its age until then.
    Renew(header.session, now);
    OUTRIDER_RETURN_IF_ERROR(room.status());
    return Wait{.comes_soon = *room == Room::kComesSoon};
  }

  if (session == nullptr || (opens && header.step != session->last_step)) {
    session = &Open(header, session);
  } else {
    session->NoteReturn(now);
  }
  blocks_.Cut(*session, keep_length);
  if (keep_length == 0) blocks_.Begin(*session, std::move(prefix), appended);
  blocks_.Take(*session, num_new);
  BeginRound(call, *session);
  idle_.erase(session->place);
  return session;
}

std::optional<Miss> NodeSessions::CheckOpening(
    const RequestHeader& header, uint64_t digest,
    const NodeSession* session) const {
  if (session == nullptr) {
    if (!released_openings_.Covers(header.session, header.step)) return {};
    return Miss{MissReason::kStale, 0};
  }
  if (header.step > session->last_step) return {};
  const bool is_same_opening = header.step == session->last_step &&
                               header.step == session->opening_step &&
                               digest == session->last_digest;
  if (is_same_opening) return {};
  return Miss{MissReason::kStale, session->log.length()};
}

std::optional<Miss> NodeSessions::CheckLive(const RequestHeader& header,
                                            const NodeSession* session) const {
  if (session == nullptr) return Miss{MissReason::kUnknownIncarnation, 0};
  const int cached_length = session->log.length();
  if (header.incarnation != session->incarnation) {
    return Miss{MissReason::kUnknownIncarnation, cached_length};
  }
  if (header.step < session->last_step) {
    return Miss{MissReason::kStale, cached_length};
  }
  if (header.delta.keep_length > cached_length) {
    return Miss{MissReason::kLength, cached_length};
  }
  if (header.prefix_hash.has_value() &&
      *header.prefix_hash !=
          session->log.PrefixHash(header.delta.keep_length)) {
    return Miss{MissReason::kPrefix, cached_length};
  }
  const int keep_length = header.delta.keep_length;
  const int writable_length = blocks_.WritableLength(*session, keep_length);
  if (writable_length < keep_length) {
    return Miss{MissReason::kLength, writable_length};
  }
  return std::nullopt;
}

NodeSession& NodeSessions::Open(const RequestHeader& header,
                                NodeSession* session) {
  if (session == nullptr) {
    auto& entry = sessions_[header.session];
    entry = std::make_unique<NodeSession>(header.session);
    session = entry.get();
    session->age_rank = ++num_opened_;
    session->place = idle_.insert(idle_.end(), session);
  }
  session->incarnation = Incarnation::Random();
  session->salt = blocks_.SaltOf(header.cache_salt);
  session->opening_step = header.step;
  return *session;
}

void NodeSessions::Extended(NodeSession& session,
                            absl::Span<const TokenId> tokens) {
  blocks_.Append(session, tokens);
}

void NodeSessions::TakeBack(NodeSession& session, int length) {
  OUTRIDER_CHECK(session.is_at_work);
  blocks_.Forget(session, length);
}

int NodeSessions::MakeBranches(NodeSession& session,
                               absl::Span<const Fork> forks) {
  OUTRIDER_CHECK(session.is_at_work);
  return blocks_.MakeBranches(session, forks, /*num_left=*/num_sessions());
}

void NodeSessions::EndRound(NodeSession& session, Clock::time_point now) {
  OUTRIDER_CHECK(session.is_at_work);
  blocks_.EndBranches(session);
  session.is_at_work = false;
  session.gives_way_to.reset();
  session.last_end = session.last_use = now;
  session.has_returned = false;
  session.place = idle_.insert(idle_.end(), &session);
  const int length = session.log.length();
  blocks_.KeepFirst(session, OUTRIDER_MUTANT(E2, NumKvBlocks(length),
                                             length / kKvBlockLength));
  if (std::exchange(session.is_doubtful, false)) blocks_.Distrust(session);
  blocks_.ShareUpTo(session, std::min(session.settled_length, length));
  if (session.is_released) Drop(session);
}

void NodeSessions::Discard(NodeSession& session) {
  blocks_.Distrust(session);
  Drop(session);
}

void NodeSessions::Drop(NodeSession& session) {
  blocks_.EndBranches(session);
  if (session.is_over) blocks_.EndText(session);
  // Nobody will cut it any more: also what was drafted is a text.
  blocks_.ShareUpTo(session, session.log.length());
  blocks_.Cut(session, 0);
  blocks_.KeepFirst(session, 0);
  if (!session.is_at_work) idle_.erase(session.place);
  const SessionId id = session.id;
  sessions_.erase(id);
}

bool NodeSessions::Truncate(const RequestHeader& header, int length) {
  NodeSession* session = FindMutable(header.session);
  if (session == nullptr || session->incarnation != header.incarnation ||
      header.step < session->last_step || session->is_at_work) {
    return false;
  }
  length = std::min(length, session->log.length());
  blocks_.Cut(*session, blocks_.WritableLength(*session, length));
  return true;
}

bool NodeSessions::Release(const RequestHeader& header) {
  const bool is_opening = header.incarnation.is_none();
  if (is_opening) released_openings_.Add(header.session, header.step);
  NodeSession* session = FindMutable(header.session);
  if (session == nullptr || header.step < session->last_step ||
      (!is_opening && session->incarnation != header.incarnation)) {
    return false;
  }
  session->is_released = true;
  session->is_over = header.is_over;
  if (!session->is_at_work) Drop(*session);
  return true;
}

const NodeSession* NodeSessions::Find(const SessionId& session) const {
  const auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : it->second.get();
}

NodeSession* NodeSessions::FindMutable(const SessionId& session) {
  const auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : it->second.get();
}

absl::Status NodeSessions::TryLater(absl::string_view what) {
  // Spread, so that those who were refused together do not come back together.
  std::uniform_int_distribution<int> delay(50, 1000);
  return WithRetryDelay(absl::ResourceExhaustedError(absl::StrCat(
                            what, ": try again later, or another node")),
                        std::chrono::milliseconds(delay(jitter_)));
}

int64_t NodeSessions::num_looked_at() const {
  return blocks_.free_count().num_looked_at();
}

bool NodeSessions::IsConsistent() const {
  std::vector<int> num_owners(blocks().num_total(), 0);
  int64_t num_tokens = 0;
  for (const auto& [id, session] : sessions_) {
    const int length = session->log.length();
    const int num_needed = NumKvBlocks(length);
    if (NumBlocks(session.get()) < num_needed) return false;
    if (!session->is_at_work && NumBlocks(session.get()) > num_needed) {
      return false;
    }
    if (!blocks_.HoldsItsText(*session)) return false;
    for (const KvBlockId block : session->blocks) ++num_owners[block];
    for (const Branch& branch : session->branches) {
      for (const KvBlockId block : branch.blocks) ++num_owners[block];
    }
    num_tokens += length;
  }
  return blocks().HasOwners(num_owners) && num_tokens == num_cached_tokens();
}

}  // namespace outrider
