// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_WEAK_PROTOCOL_H_
#define OUTRIDER_TESTS_SIMULATION_WEAK_PROTOCOL_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/session/cache_delta.h"
#include "core/session/node_sessions.h"

namespace outrider::testing {

// A protocol that leaves out some of what ours has (the designs that a model
// check has refuted). It is played over our own nodes: what it does not look at
// is made to fit before they see it.
struct WeakProtocol {
  enum class Life {
    kRandom,     // ours: an incarnation that nothing repeats
    kOfSession,  // one for all lives
    kOfOpening,  // the coordinator's, hence in each copy of the opening
    kOfBoot,     // counted by the node, from 1 after each start
  };

  bool has_step = true;
  bool has_hash = true;
  bool has_incarnation = true;
  Life life = Life::kRandom;
  bool late_openings_count = false;  // and bring their step with them
  bool replies_match_step = true;    // else: the session alone
  bool truncates_apart = false;      // what keep_length says is a call
  bool truncates_by_number = false;  // and says how many tokens go
  bool expects_length = false;       // a call says what length it follows
};

// Stands between one life of a node and its calls.
class WeakDoor {
 public:
  explicit WeakDoor(const WeakProtocol& protocol) : protocol_(protocol) {}

  // A request's header as a node with our protocol takes it.
  RequestHeader In(RequestHeader header, const NodeSessions& sessions) {
    const NodeSession* session = sessions.Find(header.session);
    if (!protocol_.has_hash) header.prefix_hash.reset();
    header.step = StepIn(header, session);
    if (session == nullptr || header.incarnation.is_none()) return header;
    const auto named = lives_.find(session->incarnation);
    const bool is_named =
        named != lives_.end() && named->second == header.incarnation;
    if (!protocol_.has_incarnation || is_named) {
      header.incarnation = session->incarnation;
    }
    return header;
  }

  // The header of the answer to `request`, as it was sent.
  void Out(const RequestHeader& request, ReplyHeader& reply) {
    reply.step = request.step;
    if (protocol_.life == WeakProtocol::Life::kRandom ||
        reply.incarnation.is_none()) {
      return;
    }
    const auto [life, is_new] = lives_.try_emplace(reply.incarnation);
    if (is_new) life->second = Name(request);
    reply.incarnation = life->second;
  }

 private:
  uint64_t StepIn(const RequestHeader& header, const NodeSession* session) {
    if (!protocol_.has_step) return ++last_step_;
    uint64_t& offset = offsets_[header.session];
    const bool is_late = session != nullptr && header.incarnation.is_none() &&
                         header.step + offset <= session->last_step;
    if (is_late && protocol_.late_openings_count) {
      offset = session->last_step + 1 - header.step;
    }
    return header.step + offset;
  }
  Incarnation Name(const RequestHeader& request) {
    std::string text(16, 'x');
    switch (protocol_.life) {
      case WeakProtocol::Life::kRandom:
      case WeakProtocol::Life::kOfSession:
        break;
      case WeakProtocol::Life::kOfOpening:
        text = absl::StrCat(request.step, text);
        break;
      case WeakProtocol::Life::kOfBoot:
        text = absl::StrCat(++num_lives_, text);
        break;
    }
    return Incarnation::FromBytes(text.substr(0, 16));
  }

  const WeakProtocol protocol_;
  uint64_t last_step_ = uint64_t{1} << 48;
  std::map<SessionId, uint64_t> offsets_;
  std::map<Incarnation, Incarnation> lives_;  // the node's, and what it says
  int num_lives_ = 0;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_WEAK_PROTOCOL_H_
