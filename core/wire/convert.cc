// SPDX-License-Identifier: Apache-2.0
#include "core/wire/convert.h"

#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/packing.h"
#include "core/wire/sampling_convert.h"

namespace outrider {
namespace {

constexpr uint32_t kMaxLength = std::numeric_limits<int32_t>::max();

absl::StatusOr<Id128> ToId(const std::string& bytes, absl::string_view field) {
  if (bytes.size() != 16) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must have 16 bytes, not ", bytes.size()));
  }
  return Id128::FromBytes(bytes);
}

absl::StatusOr<int> ToLength(uint32_t value, absl::string_view field) {
  if (value > kMaxLength) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is far too large: ", value));
  }
  return static_cast<int>(value);
}

template <typename Field>
std::vector<TokenId> ToTokens(const Field& field) {
  return {field.begin(), field.end()};
}

template <typename Field>
void SetTokens(absl::Span<const TokenId> tokens, Field* field) {
  field->Add(tokens.begin(), tokens.end());
}

void SetDuration(double seconds, google::protobuf::Duration* duration) {
  const int64_t nanos = static_cast<int64_t>(seconds * 1e9);
  duration->set_seconds(nanos / 1'000'000'000);
  duration->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

double ToSeconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + 1e-9 * duration.nanos();
}

v1::RequestHeader ToProto(const RequestHeader& header) {
  v1::RequestHeader proto;
  proto.set_session_id(header.session.ToBytes());
  proto.set_incarnation(header.incarnation.ToBytes());
  proto.set_step(header.step);
  proto.mutable_cache_delta()->set_keep_length(header.delta.keep_length);
  SetTokens(header.delta.append_tokens,
            proto.mutable_cache_delta()->mutable_append_tokens());
  if (header.prefix_hash.has_value()) {
    proto.set_prefix_hash(*header.prefix_hash);
  }
  return proto;
}

absl::StatusOr<RequestHeader> FromProto(const v1::RequestHeader& proto) {
  RequestHeader header = {.step = proto.step()};
  OUTRIDER_ASSIGN_OR_RETURN(header.session,
                            ToId(proto.session_id(), "session_id"));
  if (!proto.incarnation().empty()) {
    OUTRIDER_ASSIGN_OR_RETURN(header.incarnation,
                              ToId(proto.incarnation(), "incarnation"));
  }
  OUTRIDER_ASSIGN_OR_RETURN(
      header.delta.keep_length,
      ToLength(proto.cache_delta().keep_length(), "keep_length"));
  header.delta.append_tokens = ToTokens(proto.cache_delta().append_tokens());
  if (proto.has_prefix_hash()) header.prefix_hash = proto.prefix_hash();
  return header;
}

v1::ReplyHeader ToProto(const ReplyHeader& header) {
  v1::ReplyHeader proto;
  proto.set_session_id(header.session.ToBytes());
  proto.set_incarnation(header.incarnation.ToBytes());
  proto.set_step(header.step);
  proto.set_cached_length(header.cached_length);
  SetDuration(header.compute_seconds, proto.mutable_compute_time());
  return proto;
}

absl::StatusOr<ReplyHeader> FromProto(const v1::ReplyHeader& proto) {
  ReplyHeader header = {
      .session = SessionId::FromBytes(proto.session_id()),
      .incarnation = Incarnation::FromBytes(proto.incarnation()),
      .step = proto.step(),
      .compute_seconds = ToSeconds(proto.compute_time())};
  OUTRIDER_ASSIGN_OR_RETURN(header.cached_length,
                            ToLength(proto.cached_length(), "cached_length"));
  return header;
}

v1::Miss ToProto(const Miss& miss) {
  v1::Miss proto;
  proto.set_cached_length(miss.cached_length);
  switch (miss.reason) {
    case MissReason::kUnknownIncarnation:
      proto.set_reason(v1::Miss::REASON_UNKNOWN_INCARNATION);
      break;
    case MissReason::kStale:
      proto.set_reason(v1::Miss::REASON_STALE);
      break;
    case MissReason::kLength:
      proto.set_reason(v1::Miss::REASON_LENGTH);
      break;
    case MissReason::kPrefix:
      proto.set_reason(v1::Miss::REASON_PREFIX);
      break;
  }
  return proto;
}

absl::StatusOr<Miss> FromProto(const v1::Miss& proto) {
  Miss miss;
  OUTRIDER_ASSIGN_OR_RETURN(miss.cached_length,
                            ToLength(proto.cached_length(), "cached_length"));
  switch (proto.reason()) {
    case v1::Miss::REASON_STALE:
      miss.reason = MissReason::kStale;
      break;
    case v1::Miss::REASON_LENGTH:
      miss.reason = MissReason::kLength;
      break;
    case v1::Miss::REASON_PREFIX:
      miss.reason = MissReason::kPrefix;
      break;
    default:  // an unknown reason is answered like the safest: open again
      miss.reason = MissReason::kUnknownIncarnation;
  }
  return miss;
}

absl::StatusOr<Distribution> FromProto(const v1::SparseRow& row,
                                       int vocab_size) {
  if (row.weight_dtype() != v1::DTYPE_FLOAT64) {
    return absl::InvalidArgumentError("weight_dtype must be FLOAT64");
  }
  OUTRIDER_ASSIGN_OR_RETURN(std::vector<double> weights,
                            UnpackFloat64(row.weights()));
  return Distribution::Create(ToTokens(row.ids()), std::move(weights),
                              vocab_size);
}

}  // namespace

v1::DraftRequest ToProto(const DraftCall& call) {
  v1::DraftRequest request;
  *request.mutable_header() = ToProto(call.header);
  request.set_max_draft_tokens(call.max_draft_tokens);
  request.set_support_size(call.support_size);
  *request.mutable_sampling() = ToProto(call.sampling);
  request.set_seed(call.seed);
  request.set_prompt_length(call.prompt_length);
  request.set_min_draft_probability(call.min_draft_probability);
  return request;
}

absl::StatusOr<DraftCall> FromProto(const v1::DraftRequest& request) {
  DraftCall call = {.seed = request.seed(),
                    .min_draft_probability = request.min_draft_probability()};
  OUTRIDER_ASSIGN_OR_RETURN(call.header, FromProto(request.header()));
  OUTRIDER_ASSIGN_OR_RETURN(
      call.max_draft_tokens,
      ToLength(request.max_draft_tokens(), "max_draft_tokens"));
  OUTRIDER_ASSIGN_OR_RETURN(call.support_size,
                            ToLength(request.support_size(), "support_size"));
  if (call.support_size == 0) call.support_size = kDefaultSupportSize;
  OUTRIDER_ASSIGN_OR_RETURN(call.sampling, FromProto(request.sampling()));
  OUTRIDER_ASSIGN_OR_RETURN(call.prompt_length,
                            ToLength(request.prompt_length(), "prompt_length"));
  return call;
}

void ToProto(const DraftReply& reply, v1::DraftResponse& response) {
  *response.mutable_header() = ToProto(reply.header);
  if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
    *response.mutable_miss() = ToProto(*miss);
    return;
  }
  const Draft& draft = std::get<Draft>(reply.outcome);
  v1::DraftResult& result = *response.mutable_result();
  SetTokens(draft.tokens, result.mutable_tokens());
  for (const Distribution& q : draft.distributions) {
    v1::SparseRow& row = *result.add_rows();
    SetTokens(q.support(), row.mutable_ids());
    row.set_weights(PackFloat64(q.weights()));
    row.set_weight_dtype(v1::DTYPE_FLOAT64);
  }
}

absl::StatusOr<DraftReply> FromProto(const v1::DraftResponse& response,
                                     uint64_t start, int vocab_size) {
  DraftReply reply;
  OUTRIDER_ASSIGN_OR_RETURN(reply.header, FromProto(response.header()));
  if (response.has_miss()) {
    OUTRIDER_ASSIGN_OR_RETURN(reply.outcome, FromProto(response.miss()));
    return reply;
  }
  Draft draft = {.start = start,
                 .tokens = ToTokens(response.result().tokens())};
  for (const v1::SparseRow& row : response.result().rows()) {
    OUTRIDER_ASSIGN_OR_RETURN(Distribution q, FromProto(row, vocab_size));
    draft.distributions.push_back(std::move(q));
  }
  reply.outcome = std::move(draft);
  return reply;
}

v1::VerifyRequest ToProto(const VerifyCall& call) {
  v1::VerifyRequest request;
  *request.mutable_header() = ToProto(call.header);
  SetTokens(call.draft_tokens, request.mutable_draft_tokens());
  switch (call.reply_format) {
    case ReplyFormat::kFull:
      request.set_reply_format(v1::REPLY_FORMAT_FULL);
      break;
    case ReplyFormat::kSparse:
      request.set_reply_format(v1::REPLY_FORMAT_SPARSE);
      break;
    case ReplyFormat::kTokens:
      request.set_reply_format(v1::REPLY_FORMAT_TOKENS);
      break;
  }
  *request.mutable_sampling() = ToProto(call.sampling);
  request.set_seed(call.seed);
  request.set_prompt_length(call.prompt_length);
  return request;
}

absl::StatusOr<VerifyCall> FromProto(const v1::VerifyRequest& request) {
  VerifyCall call = {.draft_tokens = ToTokens(request.draft_tokens()),
                     .seed = request.seed()};
  OUTRIDER_ASSIGN_OR_RETURN(call.header, FromProto(request.header()));
  switch (request.reply_format()) {
    case v1::REPLY_FORMAT_UNSPECIFIED:
    case v1::REPLY_FORMAT_FULL:
      call.reply_format = ReplyFormat::kFull;
      break;
    case v1::REPLY_FORMAT_SPARSE:
      call.reply_format = ReplyFormat::kSparse;
      break;
    case v1::REPLY_FORMAT_TOKENS:
      call.reply_format = ReplyFormat::kTokens;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("unknown reply_format ", request.reply_format()));
  }
  if (request.has_sampling()) {
    OUTRIDER_ASSIGN_OR_RETURN(call.sampling, FromProto(request.sampling()));
  }
  OUTRIDER_ASSIGN_OR_RETURN(call.prompt_length,
                            ToLength(request.prompt_length(), "prompt_length"));
  return call;
}

void ToProto(const VerifyReply& reply, v1::VerifyResponse& response) {
  *response.mutable_header() = ToProto(reply.header);
  if (const Miss* miss = std::get_if<Miss>(&reply.outcome)) {
    *response.mutable_miss() = ToProto(*miss);
    return;
  }
  const LogitRows& rows = std::get<LogitRows>(reply.outcome);
  v1::FullRows& full = *response.mutable_full();
  full.set_num_rows(rows.num_rows());
  full.set_vocab_size(rows.vocab_size());
  full.set_dtype(v1::DTYPE_FLOAT32);
  full.set_logits(PackRows(rows));
}

absl::StatusOr<VerifyReply> FromProto(v1::VerifyResponse response) {
  VerifyReply reply;
  OUTRIDER_ASSIGN_OR_RETURN(reply.header, FromProto(response.header()));
  if (response.has_miss()) {
    OUTRIDER_ASSIGN_OR_RETURN(reply.outcome, FromProto(response.miss()));
    return reply;
  }
  v1::FullRows& full = *response.mutable_full();
  if (full.dtype() != v1::DTYPE_FLOAT32) {
    return absl::InvalidArgumentError("dtype of the rows must be FLOAT32");
  }
  OUTRIDER_ASSIGN_OR_RETURN(const int num_rows,
                            ToLength(full.num_rows(), "num_rows"));
  OUTRIDER_ASSIGN_OR_RETURN(const int vocab_size,
                            ToLength(full.vocab_size(), "vocab_size"));
  OUTRIDER_ASSIGN_OR_RETURN(
      reply.outcome,
      UnpackRows(std::move(*full.mutable_logits()), num_rows, vocab_size));
  return reply;
}

absl::StatusOr<RequestHeader> FromProto(const v1::TruncateRequest& request) {
  RequestHeader header = {.step = request.step()};
  OUTRIDER_ASSIGN_OR_RETURN(header.session,
                            ToId(request.session_id(), "session_id"));
  OUTRIDER_ASSIGN_OR_RETURN(header.incarnation,
                            ToId(request.incarnation(), "incarnation"));
  OUTRIDER_ASSIGN_OR_RETURN(header.delta.keep_length,
                            ToLength(request.length(), "length"));
  return header;
}

absl::StatusOr<RequestHeader> FromProto(const v1::ReleaseRequest& request) {
  RequestHeader header = {.step = request.step()};
  OUTRIDER_ASSIGN_OR_RETURN(header.session,
                            ToId(request.session_id(), "session_id"));
  OUTRIDER_ASSIGN_OR_RETURN(header.incarnation,
                            ToId(request.incarnation(), "incarnation"));
  return header;
}

}  // namespace outrider
