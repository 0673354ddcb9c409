// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_JUDGEMENTS_H_
#define OUTRIDER_TESTS_SIMULATION_JUDGEMENTS_H_

#include <map>
#include <tuple>
#include <variant>
#include <vector>

#include "core/base/session_id.h"
#include "core/base/token.h"
#include "core/wire/node_calls.h"

namespace outrider::testing {

// How verifiers have judged the drafts of each round, whether or not anybody
// heard of it: lost replies, retries, moves and what comes late included. A
// round that is judged twice, wherever, ends the same.
class Judgements {
 public:
  // False: the same drafts after the same text had another verdict before.
  bool Write(const VerifyCall& call, const VerifyReply& reply,
             bool is_other_model) {
    const Verdict* verdict = std::get_if<Verdict>(&reply.outcome);
    if (verdict == nullptr) return true;
    const std::pair end(verdict->num_accepted, verdict->next_token);
    return ends_
               .try_emplace({call.header.session, call.header.delta.length(),
                             call.draft_tokens, is_other_model},
                            end)
               .first->second == end;
  }

 private:
  using Round = std::tuple<SessionId, size_t, std::vector<TokenId>, bool>;
  std::map<Round, std::pair<int, TokenId>> ends_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_JUDGEMENTS_H_
