// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_JUDGEMENTS_H_
#define OUTRIDER_TESTS_SIMULATION_JUDGEMENTS_H_

#include <algorithm>
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
  // False: the same drafts after the same text had another verdict before, or
  // the verifier went on with other tokens after it.
  bool Write(const VerifyCall& call, const VerifyReply& reply,
             bool is_other_model) {
    const Verdict* verdict = std::get_if<Verdict>(&reply.outcome);
    if (verdict == nullptr) return true;
    const End end = {*verdict, reply.more_tokens};
    End& known =
        ends_
            .try_emplace({call.header.session, call.header.delta.length(),
                          call.draft_tokens, is_other_model},
                         end)
            .first->second;
    // A call may have let it go further than another.
    const bool is_longer = end.more.size() > known.more.size();
    const std::vector<TokenId>& shorter = is_longer ? known.more : end.more;
    const std::vector<TokenId>& longer = is_longer ? end.more : known.more;
    const bool are_same =
        end.verdict == known.verdict &&
        std::equal(shorter.begin(), shorter.end(), longer.begin());
    if (is_longer) known = end;
    return are_same;
  }

 private:
  struct End {
    Verdict verdict = {};
    std::vector<TokenId> more = {};
  };
  using Round = std::tuple<SessionId, size_t, std::vector<TokenId>, bool>;
  std::map<Round, End> ends_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_JUDGEMENTS_H_
