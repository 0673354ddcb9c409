// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/node_coverage.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace outrider::testing {
namespace {

using State = NodeCoverage::State;
using Message = NodeCoverage::Message;

// What a message is depends on the session's state.
bool IsPossible(State state, Message message) {
  switch (message) {
    // A coordinator that says two things in one step, and a cache that is none
    // of its session's: what the protocol rules out, these runs never have.
    case Message::kOtherContent:
    case Message::kOtherPrefix:
      return false;
    case Message::kReleasedOpening:
      return state == State::kUnknown;
    case Message::kOpening:
    case Message::kOtherLife:
    case Message::kOldRelease:
    case Message::kBlindRelease:
      return true;
    default:
      return state != State::kUnknown;
  }
}

}  // namespace

Message NodeCoverage::KindOf(const RequestHeader& header, uint64_t digest,
                             const NodeSession* session) {
  const bool opens = header.incarnation.is_none();
  if (session == nullptr) {
    return opens ? Message::kOpening : Message::kOtherLife;
  }
  const bool is_same =
      header.step == session->last_step && digest == session->last_digest;
  if (opens) {
    if (header.step > session->last_step) return Message::kOpening;
    return is_same && header.step == session->opening_step
               ? Message::kSameOpening
               : Message::kOldOpening;
  }
  if (header.incarnation != session->incarnation) return Message::kOtherLife;
  if (header.step < session->last_step) return Message::kOldStep;
  const int keep_length = header.delta.keep_length;
  if (keep_length > session->log.length()) return Message::kTooLong;
  if (header.prefix_hash.has_value() &&
      *header.prefix_hash != session->log.PrefixHash(keep_length)) {
    return Message::kOtherPrefix;
  }
  if (header.step > session->last_step) return Message::kNext;
  return is_same ? Message::kSameStep : Message::kOtherContent;
}

Message NodeCoverage::KindOfRelease(const RequestHeader& header,
                                    const NodeSession* session) {
  if (header.incarnation.is_none()) return Message::kBlindRelease;
  const bool is_its = session != nullptr &&
                      header.incarnation == session->incarnation &&
                      header.step >= session->last_step;
  return is_its ? Message::kRelease : Message::kOldRelease;
}

std::string NodeCoverage::ToString() const {
  std::string text;
  for (size_t m = 0; m < kMessages.size(); ++m) {
    absl::StrAppendFormat(&text, "%-18s", kMessages[m]);
    for (size_t s = 0; s < kStates.size(); ++s) {
      absl::StrAppendFormat(&text, "%9s %8d", kStates[s], counts_[s][m]);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::vector<std::string> NodeCoverage::Wrong() const {
  std::vector<std::string> wrong;
  for (size_t s = 0; s < kStates.size(); ++s) {
    for (size_t m = 0; m < kMessages.size(); ++m) {
      const auto state = static_cast<State>(s);
      const auto message = static_cast<Message>(m);
      const bool is_seen = counts_[s][m] > 0;
      if (is_seen == IsPossible(state, message)) continue;
      wrong.push_back(absl::StrCat(kStates[s], ": ", kMessages[m],
                                   is_seen ? " came" : " never came"));
    }
  }
  return wrong;
}

}  // namespace outrider::testing
