// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_SESSION_WATCH_H_
#define OUTRIDER_TESTS_SIMULATION_SESSION_WATCH_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/peers/node_stub.h"
#include "core/base/token.h"
#include "core/sampling/draft.h"
#include "core/session/cache_delta.h"
#include "tests/simulation/coverage.h"

namespace outrider::testing {

// What a drafter has drafted, and the text that it was asked to go on from.
struct Offer {
  std::vector<TokenId> text = {};
  Draft draft = {};
};

// What the links to nodes have seen of one session.
struct SessionWatch {
  static constexpr int kNowhere = -1;

  int node = kNowhere;          // the verifier that answered last
  int leaving = kNowhere;       // the one that has said that it drains
  uint64_t leaving_life = 0;    // in that of its lives
  bool has_failed = false;      // a step did, so that it may have moved
  int num_killed = 0;           // verifiers that it took down
  bool is_other_model = false;  // that it began with
  std::map<uint64_t, uint64_t> digests = {};  // of what each step said
  std::vector<TokenId> text = {};             // that is committed
  int num_asked = 0;  // drafts that the round is to have; 0: none yet
  std::optional<Offer> in_turn = {};  // by a drafter, last
  std::vector<Offer> ahead = {};      // likewise, for each outcome
  // The text and what was in flight, of a call ahead that was given up last.
  std::vector<TokenId> given_up = {};

  int judged_length = -1;  // of the text whose drafts were sent last
  int most_drafts = 0;     // after it

  // How many of them may be judged now that a verifier takes so many: one that
  // takes fewer has them lose the last ones, wherever the session goes then.
  int MostDrafts(int length, const VerifyStub& verifier) {
    const int here = verifier.MostDrafts(length);
    if (std::exchange(judged_length, length) != length) most_drafts = here;
    most_drafts = std::min(most_drafts, here);
    return most_drafts;
  }
  // False: this step said something else before.
  bool Says(uint64_t step, uint64_t digest) {
    return digests.try_emplace(step, digest).first->second == digest;
  }
  // A round has its drafts: what was drafted ahead is one of them, or has no
  // further use. Where the verifier took fewer than were in flight, the text
  // may become another of those outcomes later on, after the call was settled.
  void Proposed() {
    std::erase_if(ahead,
                  [this](const Offer& offer) { return offer.text != text; });
  }
  // Whether the drafter was asked for the text as it is, and has drafted.
  bool HasInTurn() const {
    return in_turn.has_value() && in_turn->text == text;
  }
  // The draft that goes on from it; null: none does.
  const Draft* Fitting() const {
    for (const Offer& offer : ahead) {
      if (offer.text == text) return &offer.draft;
    }
    return HasInTurn() ? &in_turn->draft : nullptr;
  }
  Coverage::State StateAt(int verifier, const RequestHeader& header) const {
    if (node == kNowhere) return Coverage::State::kOpening;
    if (!header.incarnation.is_none()) return Coverage::State::kOpen;
    return node == verifier ? Coverage::State::kReopening
                            : Coverage::State::kMoving;
  }
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_SESSION_WATCH_H_
