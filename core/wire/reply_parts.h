// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_REPLY_PARTS_H_
#define OUTRIDER_CORE_WIRE_REPLY_PARTS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/model/logit_rows.h"
#include "core/wire/draft_score.h"
#include "core/wire/node_calls.h"

namespace outrider {

// What the reply formats share.

// INTERNAL: the reply is not what was asked for.
absl::Status WrongFormat();
// INTERNAL unless there is one row more than drafts.
absl::Status CheckNumRows(int num_rows, const VerifyCall& call);
// INTERNAL unless the reply speaks of the tokens that the verifier described.
absl::Status CheckVocabulary(const VerifyReply& reply, int vocab_size);

// Where the verifier processes the rows: what it needs to know for that.
absl::Status CheckProcessing(const VerifyCall& call, int vocab_size);
// INVALID_ARGUMENT unless the ids are those of a draft row with the draft in
// it: known and ascending.
absl::Status CheckSupport(absl::Span<const TokenId> support, TokenId draft,
                          int vocab_size);
// INVALID_ARGUMENT unless the call has as many supports and draft rows as its
// format needs.
absl::Status CheckNumDraftRows(const VerifyCall& call, size_t num_supports,
                               size_t num_rows);

// What the verifier computes where log-probabilities are asked for: the scores
// of the tokens that each row may give.
absl::StatusOr<std::vector<RowScores>> ScoreCandidates(
    const VerifyCall& call, const LogitRows& rows,
    absl::Span<const TokenId> committed, absl::Span<const TokenSeq> candidates);
// Called by the coordinator. INTERNAL: these scores do not fit their tokens.
absl::Status CheckScores(const VerifyCall& call,
                         absl::Span<const TokenSeq> candidates,
                         absl::Span<const RowScores> scores);
// The same scores, which fit, beside their tokens.
std::vector<ScoredRow> JoinScores(const VerifyCall& call,
                                  std::vector<TokenSeq> candidates,
                                  std::vector<RowScores> scores);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_REPLY_PARTS_H_
