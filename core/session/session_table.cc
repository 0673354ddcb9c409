// SPDX-License-Identifier: Apache-2.0
#include "core/session/session_table.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace outrider {

absl::StatusOr<std::variant<SessionTable::Admission, Miss>> SessionTable::Admit(
    const RequestHeader& header, uint64_t content_digest, int num_draft_tokens,
    Clock::time_point now) {
  const int wanted_length =
      header.delta.keep_length +
      static_cast<int>(header.delta.append_tokens.size()) + num_draft_tokens;
  if (options_.max_cached_tokens > 0 &&
      wanted_length > options_.max_cached_tokens) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the session needs a cache of ", wanted_length,
                     " tokens, this node has ", options_.max_cached_tokens,
                     " for all sessions together"));
  }

  std::variant<Admission, Miss> outcome;
  if (header.incarnation.is_none()) {
    if (header.delta.keep_length != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a request without incarnation opens the session: "
                       "keep_length must be 0, not ",
                       header.delta.keep_length));
    }
    outcome = AdmitOpen(header, content_digest);
  } else {
    const auto it = sessions_.find(header.session);
    if (it == sessions_.end()) return Miss{MissReason::kUnknownIncarnation, 0};
    Entry& entry = it->second;
    if (const std::optional<Miss> miss = CheckLive(header, entry)) return *miss;
    if (header.step == entry.last_step && content_digest != entry.last_digest) {
      return absl::InvalidArgumentError(absl::StrCat(
          "step ", header.step, " came before with another content"));
    }
    entry.last_step = header.step;
    entry.last_digest = content_digest;
    outcome = Admission{entry.incarnation, header.delta.keep_length, {}};
  }

  if (auto* admission = std::get_if<Admission>(&outcome)) {
    Entry& entry = sessions_.at(header.session);
    entry.last_use = now;
    idle_order_.splice(idle_order_.end(), idle_order_, entry.place);
    admission->evicted = MakeRoom(header.session, wanted_length);
  }
  return outcome;
}

std::variant<SessionTable::Admission, Miss> SessionTable::AdmitOpen(
    const RequestHeader& header, uint64_t content_digest) {
  const auto it = sessions_.find(header.session);
  if (it != sessions_.end()) {
    Entry& live = it->second;
    const bool same_open = header.step == live.last_step &&
                           header.step == live.opening_step &&
                           content_digest == live.last_digest;
    if (same_open) return Admission{live.incarnation, 0, {}};
    if (header.step <= live.last_step) {
      return Miss{MissReason::kStale, live.log.length()};
    }
    Drop(header.session);
  } else if (released_.Covers(header.session, header.step)) {
    return Miss{MissReason::kStale, 0};
  }
  Entry& entry =
      sessions_.try_emplace(header.session, header.session).first->second;
  entry.incarnation = Incarnation::Random();
  entry.opening_step = entry.last_step = header.step;
  entry.last_digest = content_digest;
  entry.place = idle_order_.insert(idle_order_.end(), header.session);
  return Admission{entry.incarnation, 0, {}};
}

std::optional<Miss> SessionTable::CheckLive(const RequestHeader& header,
                                            const Entry& entry) const {
  const int cached_length = entry.log.length();
  if (header.incarnation != entry.incarnation) {
    return Miss{MissReason::kUnknownIncarnation, cached_length};
  }
  if (header.step < entry.last_step) {
    return Miss{MissReason::kStale, cached_length};
  }
  if (header.delta.keep_length > cached_length) {
    return Miss{MissReason::kLength, cached_length};
  }
  if (header.prefix_hash.has_value() &&
      *header.prefix_hash != entry.log.PrefixHash(header.delta.keep_length)) {
    return Miss{MissReason::kPrefix, cached_length};
  }
  return std::nullopt;
}

std::vector<SessionId> SessionTable::MakeRoom(const SessionId& keep,
                                              int num_tokens) {
  const auto too_many = [&] {
    const int others = num_cached_tokens_ - CachedLength(keep);
    return num_sessions() > options_.max_sessions ||
           (options_.max_cached_tokens > 0 &&
            others + num_tokens > options_.max_cached_tokens);
  };
  std::vector<SessionId> evicted;
  while (too_many() && idle_order_.front() != keep) {
    evicted.push_back(idle_order_.front());
    Drop(evicted.back());
  }
  return evicted;
}

void SessionTable::Record(const SessionId& session, int keep_length,
                          absl::Span<const TokenId> appended) {
  const auto it = sessions_.find(session);
  OUTRIDER_CHECK(it != sessions_.end());
  TokenLog& log = it->second.log;
  num_cached_tokens_ -= log.length();
  log.TruncateTo(keep_length);
  log.Append(appended);
  num_cached_tokens_ += log.length();
}

void SessionTable::Drop(const SessionId& session) {
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  num_cached_tokens_ -= it->second.log.length();
  idle_order_.erase(it->second.place);
  sessions_.erase(it);
}

bool SessionTable::Truncate(const RequestHeader& header, int length) {
  const auto it = sessions_.find(header.session);
  if (it == sessions_.end() || it->second.incarnation != header.incarnation ||
      header.step < it->second.last_step) {
    return false;
  }
  if (length < it->second.log.length()) Record(header.session, length, {});
  return true;
}

bool SessionTable::Release(const RequestHeader& header) {
  const bool is_opening = header.incarnation.is_none();
  if (is_opening) released_.Add(header.session, header.step);
  const auto it = sessions_.find(header.session);
  if (it == sessions_.end() || header.step < it->second.last_step ||
      (!is_opening && it->second.incarnation != header.incarnation)) {
    return false;
  }
  Drop(header.session);
  return true;
}

std::vector<SessionId> SessionTable::Expire(Clock::time_point now) {
  std::vector<SessionId> expired;
  while (!idle_order_.empty() &&
         now - sessions_.at(idle_order_.front()).last_use > options_.lease) {
    expired.push_back(idle_order_.front());
    Drop(expired.back());
  }
  return expired;
}

int SessionTable::CachedLength(const SessionId& session) const {
  const TokenLog* log = Tokens(session);
  return log == nullptr ? 0 : log->length();
}

const TokenLog* SessionTable::Tokens(const SessionId& session) const {
  const auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : &it->second.log;
}

}  // namespace outrider
