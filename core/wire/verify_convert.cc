// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/convert.h"
#include "core/wire/field_convert.h"
#include "core/wire/packing.h"
#include "core/wire/row_code.h"

namespace outrider {
namespace {

void SetDraftRows(const VerifyCall& call, v1::VerifyRequest& request) {
  for (const std::vector<TokenId>& support : call.supports) {
    *request.add_draft_rows() = ToProto(support);
  }
  for (const Distribution& q : call.draft_rows) {
    *request.add_draft_rows() = ToProto(q);
  }
}

absl::Status ReadDraftRows(const v1::VerifyRequest& request, VerifyCall& call) {
  OUTRIDER_RETURN_IF_ERROR(CheckNumIds(NumIds(request.draft_rows())));
  for (const v1::SparseRow& row : request.draft_rows()) {
    if (row.packed_weights().empty() &&
        row.weight_dtype() == v1::DTYPE_UNSPECIFIED) {
      OUTRIDER_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                                UnpackIds(row.packed_ids(), row.num_ids()));
      call.supports.push_back(std::move(ids));
      continue;
    }
    // The engine knows the vocabulary's size.
    OUTRIDER_ASSIGN_OR_RETURN(
        Distribution q, FromProto(row, std::numeric_limits<TokenId>::max()));
    call.draft_rows.push_back(std::move(q));
  }
  return absl::OkStatus();
}

v1::TargetRow ToProto(const TargetRow& row) {
  v1::TargetRow proto;
  proto.set_probabilities(PackFloat64(row.probabilities()));
  proto.set_tail_mass(row.tail_mass());
  if (row.tail_mass() > 0) proto.set_tail_token(row.drawn_token());
  return proto;
}

absl::StatusOr<std::vector<TargetRow>> FromProto(const v1::TargetRows& proto,
                                                 const VerifyCall& call) {
  if (proto.rows_size() != static_cast<int>(call.supports.size()) + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the verifier sent ", proto.rows_size(), " rows for ",
                     call.supports.size(), " drafts"));
  }
  std::vector<TargetRow> rows;
  for (int i = 0; i < proto.rows_size(); ++i) {
    const v1::TargetRow& row = proto.rows(i);
    OUTRIDER_ASSIGN_OR_RETURN(std::vector<double> p,
                              UnpackFloat64(row.probabilities()));
    std::optional<TokenId> tail_token;
    if (row.has_tail_token())
      tail_token = static_cast<TokenId>(row.tail_token());
    const bool is_last = i + 1 == proto.rows_size();
    OUTRIDER_ASSIGN_OR_RETURN(
        TargetRow target,
        TargetRow::FromParts(
            is_last ? std::vector<TokenId>() : call.supports[i], std::move(p),
            row.tail_mass(), tail_token));
    rows.push_back(std::move(target));
  }
  return rows;
}

absl::StatusOr<LogprobsOptions> FromProto(const v1::LogprobsOptions& proto) {
  LogprobsOptions options = {.mode = proto.processed()
                                         ? LogprobsMode::kProcessed
                                         : LogprobsMode::kRaw};
  OUTRIDER_ASSIGN_OR_RETURN(options.num_top,
                            ToLength(proto.num_top(), "num_top"));
  if (options.num_top > kMaxTopLogprobs) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_top must be between 0 and ", kMaxTopLogprobs,
                     ", not ", options.num_top));
  }
  return options;
}

v1::RowScores ToProto(const RowScores& scores) {
  v1::RowScores proto;
  proto.set_log_normaliser(scores.log_normaliser);
  const bool narrow =
      FitFloat32(scores.tokens) && FitFloat32(scores.top_scores);
  const auto pack = narrow ? PackFloat32 : PackFloat64;
  proto.set_dtype(narrow ? v1::DTYPE_FLOAT32 : v1::DTYPE_FLOAT64);
  proto.set_scores(pack(scores.tokens));
  SetTokens(scores.top_ids, proto.mutable_top_ids());
  proto.set_top_scores(pack(scores.top_scores));
  return proto;
}

absl::StatusOr<std::vector<double>> UnpackScores(const std::string& bytes,
                                                 v1::Dtype dtype) {
  if (dtype != v1::DTYPE_FLOAT32 && dtype != v1::DTYPE_FLOAT64) {
    return absl::InvalidArgumentError("dtype must be FLOAT32 or FLOAT64");
  }
  OUTRIDER_ASSIGN_OR_RETURN(
      std::vector<double> scores,
      dtype == v1::DTYPE_FLOAT32 ? UnpackFloat32(bytes) : UnpackFloat64(bytes));
  for (const double score : scores) {
    if (score < std::numeric_limits<double>::infinity()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a score of the verifier's is ", score));
  }
  return scores;
}

absl::StatusOr<RowScores> FromProto(const v1::RowScores& proto) {
  RowScores scores = {.log_normaliser = proto.log_normaliser(),
                      .top_ids = ToTokens(proto.top_ids())};
  OUTRIDER_ASSIGN_OR_RETURN(scores.tokens,
                            UnpackScores(proto.scores(), proto.dtype()));
  OUTRIDER_ASSIGN_OR_RETURN(scores.top_scores,
                            UnpackScores(proto.top_scores(), proto.dtype()));
  if (!std::isfinite(scores.log_normaliser) ||
      scores.top_ids.size() != scores.top_scores.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the verifier sent ", scores.top_scores.size(), " scores for ",
        scores.top_ids.size(), " tokens, normaliser ", scores.log_normaliser));
  }
  return scores;
}

// Takes the numbers out of `full`.
absl::Status ReadRows(v1::FullRows& full, VerifyReply& reply) {
  OUTRIDER_ASSIGN_OR_RETURN(const int num_rows,
                            ToLength(full.num_rows(), "num_rows"));
  OUTRIDER_ASSIGN_OR_RETURN(const int vocab_size,
                            ToLength(full.vocab_size(), "vocab_size"));
  switch (full.dtype()) {
    case v1::DTYPE_BFLOAT16: {
      OUTRIDER_ASSIGN_OR_RETURN(
          reply.outcome,
          UnpackRowsBFloat16(full.logits(), num_rows, vocab_size));
      reply.is_bfloat16 = true;
      return absl::OkStatus();
    }
    case v1::DTYPE_FLOAT32: {
      OUTRIDER_ASSIGN_OR_RETURN(
          reply.outcome,
          UnpackRows(std::move(*full.mutable_logits()), num_rows, vocab_size));
      return absl::OkStatus();
    }
    default:
      return absl::InvalidArgumentError(
          "dtype of the rows must be FLOAT32 or BFLOAT16");
  }
}

}  // namespace

v1::VerifyRequest ToProto(const VerifyCall& call) {
  v1::VerifyRequest request;
  *request.mutable_header() = ToProto(call.header);
  SetTokens(call.draft_tokens, request.mutable_draft_tokens());
  request.set_reply_format(ToProto(call.reply_format));
  *request.mutable_sampling() = ToProto(call.sampling);
  request.set_seed(call.seed);
  request.set_prompt_length(call.prompt_length);
  request.set_acceptance_rule(ToProto(call.rule));
  SetDraftRows(call, request);
  if (call.logprobs.has_value()) {
    v1::LogprobsOptions& logprobs = *request.mutable_logprobs();
    logprobs.set_num_top(call.logprobs->num_top);
    logprobs.set_processed(call.logprobs->mode == LogprobsMode::kProcessed);
  }
  if (call.max_more_tokens > 0) {
    request.set_max_more_tokens(call.max_more_tokens);
    SetTokens(call.end_tokens, request.mutable_end_tokens());
  }
  return request;
}

absl::StatusOr<VerifyCall> FromProto(const v1::VerifyRequest& request) {
  VerifyCall call;
  call.draft_tokens = ToTokens(request.draft_tokens());
  call.seed = request.seed();
  OUTRIDER_ASSIGN_OR_RETURN(call.header, FromProto(request.header()));
  OUTRIDER_ASSIGN_OR_RETURN(call.reply_format,
                            FromProto(request.reply_format()));
  OUTRIDER_ASSIGN_OR_RETURN(call.rule, FromProto(request.acceptance_rule()));
  if (request.has_sampling()) {
    OUTRIDER_ASSIGN_OR_RETURN(call.sampling, FromProto(request.sampling()));
  } else if (call.reply_format != ReplyFormat::kFull &&
             call.reply_format != ReplyFormat::kFullBFloat16) {
    // Nothing says what the caller would have had in mind.
    return absl::InvalidArgumentError(
        "sampling is absent: only FULL and FULL_BFLOAT16 do without");
  }
  OUTRIDER_ASSIGN_OR_RETURN(call.prompt_length,
                            ToLength(request.prompt_length(), "prompt_length"));
  OUTRIDER_RETURN_IF_ERROR(ReadDraftRows(request, call));
  if (request.has_logprobs()) {
    OUTRIDER_ASSIGN_OR_RETURN(call.logprobs, FromProto(request.logprobs()));
  }
  OUTRIDER_ASSIGN_OR_RETURN(
      call.max_more_tokens,
      ToLength(request.max_more_tokens(), "max_more_tokens"));
  call.end_tokens = ToTokens(request.end_tokens());
  return call;
}

void ToProto(const VerifyReply& reply, v1::VerifyResponse& response) {
  *response.mutable_header() = ToProto(reply.header);
  if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
    *response.mutable_miss() = ToProto(*miss);
    return;
  }
  for (const RowScores& scores : reply.logprobs) {
    *response.add_logprobs() = ToProto(scores);
  }
  if (const Verdict* verdict = std::get_if<Verdict>(&reply.outcome)) {
    response.mutable_verdict()->set_num_accepted(verdict->num_accepted);
    response.mutable_verdict()->set_next_token(verdict->next_token);
    response.mutable_verdict()->set_lost_residual(verdict->lost_residual);
    SetTokens(reply.more_tokens, response.mutable_more_tokens());
    return;
  }
  if (const auto* target =
          std::get_if<std::vector<TargetRow>>(&reply.outcome)) {
    v1::TargetRows& sparse = *response.mutable_sparse();
    for (const TargetRow& row : *target) *sparse.add_rows() = ToProto(row);
    return;
  }
  const LogitRows& rows = std::get<LogitRows>(reply.outcome);
  v1::FullRows& full = *response.mutable_full();
  full.set_num_rows(rows.num_rows());
  full.set_vocab_size(rows.vocab_size());
  full.set_dtype(reply.is_bfloat16 ? v1::DTYPE_BFLOAT16 : v1::DTYPE_FLOAT32);
  full.set_logits(reply.is_bfloat16 ? PackRowsBFloat16(rows) : PackRows(rows));
}

absl::StatusOr<VerifyReply> FromProto(v1::VerifyResponse response,
                                      const VerifyCall& call) {
  VerifyReply reply;
  OUTRIDER_ASSIGN_OR_RETURN(reply.header, FromProto(response.header()));
  if (response.header().has_model()) {
    reply.model = FromProto(response.header().model());
  }
  if (response.has_miss()) {
    OUTRIDER_ASSIGN_OR_RETURN(reply.outcome, FromProto(response.miss()));
    return reply;
  }
  for (const v1::RowScores& scores : response.logprobs()) {
    OUTRIDER_ASSIGN_OR_RETURN(RowScores row, FromProto(scores));
    reply.logprobs.push_back(std::move(row));
  }
  if (response.has_verdict()) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const int num_accepted,
        ToLength(response.verdict().num_accepted(), "num_accepted"));
    reply.outcome = Verdict{
        .num_accepted = num_accepted,
        .next_token = static_cast<TokenId>(response.verdict().next_token()),
        .lost_residual = response.verdict().lost_residual()};
    reply.more_tokens = ToTokens(response.more_tokens());
    return reply;
  }
  if (response.has_sparse()) {
    OUTRIDER_ASSIGN_OR_RETURN(reply.outcome,
                              FromProto(response.sparse(), call));
    return reply;
  }
  OUTRIDER_RETURN_IF_ERROR(ReadRows(*response.mutable_full(), reply));
  return reply;
}

}  // namespace outrider
