// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_VERIFIER_VERIFY_ENGINE_H_
#define OUTRIDER_VERIFIER_VERIFY_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/engine/call_work.h"
#include "core/sampling/random_source.h"
#include "core/wire/node_calls.h"
#include "core/wire/reply_codec.h"

namespace outrider {

// The verifier without gRPC and sessions: makes each call the work of one
// extension, whose K + 1 rows it answers with, or with what the caller needs of
// them; without drafts, where the caller lets it, of some more of one token
// each. Thread-safe.
class VerifyEngine {
 public:
  using Call = VerifyCall;
  using Reply = VerifyReply;
  using CallWork = outrider::CallWork<Call, Reply>;
  // Makes the coins of one request from its seed.
  using RandomSourceFactory =
      std::function<std::unique_ptr<RandomSource>(uint64_t seed)>;

  struct Options {
    int vocab_size = 0;      // the tokenizer's; the head's padding is cut off
    int context_length = 0;  // the model's
    int max_draft_tokens = kDefaultMaxDraftTokens;
    bool model_answers = true;  // questions about rows; else none are asked
    RandomSourceFactory random_source = {};  // empty: Coins
  };

  explicit VerifyEngine(Options options) : options_(std::move(options)) {}

  // INVALID_ARGUMENT: malformed.
  absl::Status Check(const VerifyCall& call) const;
  // The work of a call that passed the check. `content_digest` identifies its
  // bytes.
  std::unique_ptr<Work> MakeWork(VerifyCall call, uint64_t content_digest,
                                 std::function<bool()> is_cancelled,
                                 CallWork::Done done) const;

 private:
  class VerifyWork;

  // What may be asked in place of the rows after this.
  std::vector<RowQuestion> QuestionsOf(const VerifyCall& call,
                                       const ReplyCodec::Before& before) const;
  absl::Status CheckMore(const VerifyCall& call) const;
  // All of a reply but the header, by the rows after `committed`.
  absl::StatusOr<VerifyReply> Answer(const VerifyCall& call,
                                     const LogitRows& rows,
                                     absl::Span<const TokenId> committed) const;

  const Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_VERIFIER_VERIFY_ENGINE_H_
