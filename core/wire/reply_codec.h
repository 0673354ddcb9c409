// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_REPLY_CODEC_H_
#define OUTRIDER_CORE_WIRE_REPLY_CODEC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/model/logit_rows.h"
#include "core/sampling/draft.h"
#include "core/sampling/random_source.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/token_history.h"
#include "core/wire/draft_score.h"
#include "core/wire/node_calls.h"

namespace outrider {

// All that depends on a reply format at both ends of a Verify, but for a
// message's fields: one class for each. It has no state; thread-safe.
class ReplyCodec {
 public:
  // What the coordinator keeps to itself of a draft that it has scored.
  struct Asker {
    const Draft& draft;
    TokenHistory history = {};  // before the draft
    RandomSource& random;       // the session's coins
  };

  virtual ~ReplyCodec() = default;

  // INVALID_ARGUMENT where the rule needs what this format does not bring.
  virtual absl::Status CheckRule(RuleKind rule) const;

  // Whether a verifier may go on by itself where there are no drafts
  // (VerifyCall::max_more_tokens).
  virtual bool GoesOn() const { return false; }

  // The coordinator calls it: what the call says of a draft beside its tokens.
  virtual void Ask(const Draft& draft, VerifyCall& call) const = 0;

  // Called by the verifier: INVALID_ARGUMENT where what this format reads of a
  // call is malformed. Delta and draft tokens were checked before.
  virtual absl::Status Check(const VerifyCall& call, int vocab_size) const = 0;

  // What stands before the drafts: so many tokens, which need not be here where
  // LooksAtText is not.
  struct Before {
    size_t length = 0;
    absl::Span<const TokenId> tokens = {};
  };

  // Called by the verifier: what may be answered in place of the K + 1 rows of
  // a call that was checked; empty where the rows themselves are needed.
  // `seed` is that of the coins. Call and tokens must outlive the result.
  virtual std::vector<RowQuestion> QuestionsOf(const VerifyCall& call,
                                               const Before& before,
                                               std::optional<uint64_t> seed,
                                               int vocab_size) const = 0;

  // The verifier's: makes the reply, but for its header, from K + 1 rows of raw
  // logits, or the answers to these questions. `committed` stands before the
  // drafts, `random` has the coins of the call's seed. INTERNAL where a row is
  // no row of logits.
  virtual absl::StatusOr<VerifyReply> Answer(
      const VerifyCall& call, LogitRows rows,
      absl::Span<const TokenId> committed, RandomSource& random) const = 0;

  // Called where a reply arrives: INTERNAL where one without a Miss is in
  // another format, does not fit the call or has a row of no logits.
  virtual absl::Status CheckReply(const VerifyCall& call,
                                  const VerifyReply& reply) const = 0;

  // Called by the coordinator: what a reply without a Miss says to the draft.
  // INTERNAL where CheckReply refuses it.
  virtual absl::StatusOr<DraftScore> Read(const VerifyCall& call,
                                          VerifyReply reply,
                                          const Asker& asker) const = 0;
};

const ReplyCodec& CodecOf(ReplyFormat format);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_REPLY_CODEC_H_
