// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_REPLY_CODECS_H_
#define OUTRIDER_CORE_WIRE_REPLY_CODECS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/wire/reply_codec.h"

namespace outrider {

// FULL and FULL_BFLOAT16: all rows of raw logits, in float32 or rounded to
// bfloat16. The coordinator processes and judges them.
class FullReply final : public ReplyCodec {
 public:
  explicit FullReply(bool is_bfloat16) : is_bfloat16_(is_bfloat16) {}
  void Ask(const Draft& draft, VerifyCall& call) const override;
  absl::Status Check(const VerifyCall& call, int vocab_size) const override;
  std::vector<RowQuestion> QuestionsOf(const VerifyCall& call,
                                       const Before& before,
                                       std::optional<uint64_t> seed,
                                       int vocab_size) const override;
  absl::StatusOr<VerifyReply> Answer(const VerifyCall& call, LogitRows rows,
                                     absl::Span<const TokenId> committed,
                                     RandomSource& random) const override;
  absl::Status CheckReply(const VerifyCall& call,
                          const VerifyReply& reply) const override;
  absl::StatusOr<DraftScore> Read(const VerifyCall& call, VerifyReply reply,
                                  const Asker& asker) const override;

 private:
  // Whether these are K + 1 rows of this format.
  absl::Status CheckRows(const VerifyCall& call,
                         const VerifyReply& reply) const;

  const bool is_bfloat16_;
};

// SPARSE: of each row what the coordinator needs to judge the draft.
class SparseReply final : public ReplyCodec {
 public:
  absl::Status CheckRule(RuleKind rule) const override;
  void Ask(const Draft& draft, VerifyCall& call) const override;
  absl::Status Check(const VerifyCall& call, int vocab_size) const override;
  std::vector<RowQuestion> QuestionsOf(const VerifyCall& call,
                                       const Before& before,
                                       std::optional<uint64_t> seed,
                                       int vocab_size) const override;
  absl::StatusOr<VerifyReply> Answer(const VerifyCall& call, LogitRows rows,
                                     absl::Span<const TokenId> committed,
                                     RandomSource& random) const override;
  absl::Status CheckReply(const VerifyCall& call,
                          const VerifyReply& reply) const override;
  absl::StatusOr<DraftScore> Read(const VerifyCall& call, VerifyReply reply,
                                  const Asker& asker) const override;
};

// TOKENS: the verifier judges.
class TokensReply final : public ReplyCodec {
 public:
  bool GoesOn() const override { return true; }
  void Ask(const Draft& draft, VerifyCall& call) const override;
  absl::Status Check(const VerifyCall& call, int vocab_size) const override;
  std::vector<RowQuestion> QuestionsOf(const VerifyCall& call,
                                       const Before& before,
                                       std::optional<uint64_t> seed,
                                       int vocab_size) const override;
  absl::StatusOr<VerifyReply> Answer(const VerifyCall& call, LogitRows rows,
                                     absl::Span<const TokenId> committed,
                                     RandomSource& random) const override;
  absl::Status CheckReply(const VerifyCall& call,
                          const VerifyReply& reply) const override;
  absl::StatusOr<DraftScore> Read(const VerifyCall& call, VerifyReply reply,
                                  const Asker& asker) const override;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_REPLY_CODECS_H_
