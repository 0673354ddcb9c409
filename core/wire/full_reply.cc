// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/base/status_macros.h"
#include "core/sampling/process.h"
#include "core/sampling/score_draft.h"
#include "core/wire/reply_codecs.h"
#include "core/wire/reply_parts.h"

namespace outrider {
namespace {

LogitRows RoundedToBFloat16(const LogitRows& rows) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(rows.num_rows()) * rows.vocab_size());
  for (const absl::Span<const float> row : rows.Rows()) {
    for (const float logit : row) values.push_back(ToFloat(ToBFloat16(logit)));
  }
  return LogitRows::FromVector(std::move(values), rows.vocab_size());
}

absl::Status CheckRowsOfLogits(const LogitRows& rows) {
  for (const absl::Span<const float> row : rows.Rows()) {
    OUTRIDER_RETURN_IF_ERROR(CheckLogits(row));
  }
  return absl::OkStatus();
}

}  // namespace

void FullReply::Ask(const Draft& /*draft*/, VerifyCall& call) const {
  call.logprobs.reset();  // the rows have them
}

absl::Status FullReply::Check(const VerifyCall& /*call*/,
                              int /*vocab_size*/) const {
  return absl::OkStatus();
}

std::vector<RowQuestion> FullReply::QuestionsOf(
    const VerifyCall& /*call*/, const Before& /*before*/,
    std::optional<uint64_t> /*seed*/, int /*vocab_size*/) const {
  return {};
}

absl::StatusOr<VerifyReply> FullReply::Answer(
    const VerifyCall& /*call*/, LogitRows rows,
    absl::Span<const TokenId> /*committed*/, RandomSource& /*random*/) const {
  if (is_bfloat16_) rows = RoundedToBFloat16(rows);
  // Checked here as processing would: a cache that gave such a row is not kept.
  OUTRIDER_RETURN_IF_ERROR(CheckRowsOfLogits(rows));
  return VerifyReply{.outcome = std::move(rows), .is_bfloat16 = is_bfloat16_};
}

absl::Status FullReply::CheckRows(const VerifyCall& call,
                                  const VerifyReply& reply) const {
  const auto* rows = std::get_if<LogitRows>(&reply.outcome);
  if (rows == nullptr || reply.is_bfloat16 != is_bfloat16_) {
    return WrongFormat();
  }
  return CheckNumRows(rows->num_rows(), call);
}

absl::Status FullReply::CheckReply(const VerifyCall& call,
                                   const VerifyReply& reply) const {
  OUTRIDER_RETURN_IF_ERROR(CheckRows(call, reply));
  return CheckRowsOfLogits(std::get<LogitRows>(reply.outcome));
}

absl::StatusOr<DraftScore> FullReply::Read(const VerifyCall& call,
                                           VerifyReply reply,
                                           const Asker& asker) const {
  OUTRIDER_RETURN_IF_ERROR(CheckRows(call, reply));
  const auto& rows = std::get<LogitRows>(reply.outcome);
  // Processing checks the logits again.
  OUTRIDER_ASSIGN_OR_RETURN(
      std::vector<TargetRow> target,
      ScoreDraft(rows.Views(),
                 DraftBlock::Of(asker.draft, asker.history, call.rule),
                 call.sampling, asker.random));
  return DraftScore{.rows = std::move(target), .scored = rows};
}

}  // namespace outrider
