// SPDX-License-Identifier: Apache-2.0
#include "core/wire/field_convert.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/duration_convert.h"
#include "core/wire/packing.h"
#include "core/wire/row_code.h"

namespace outrider {
namespace {

// How far a draft row's weights may be from a sum of 1: what rounding does, and
// more. A bfloat16 is off by at most 2^-8 / (1 + 2^-8) = 0.00389 of what it was
// rounded from, as halfway between 1 and 1 + 2^-7, and so is their sum: 255
// equal weights are off by nearly that.
constexpr double kFloat64Sum = 1e-6;
constexpr double kBFloat16Sum = 0x1p-8;

constexpr uint32_t kMaxLength = std::numeric_limits<int32_t>::max();

absl::StatusOr<std::vector<double>> UnpackWeights(const v1::SparseRow& row) {
  switch (row.weight_dtype()) {
    case v1::DTYPE_FLOAT64:
      return UnpackFloat64(row.packed_weights());
    case v1::DTYPE_BFLOAT16:
      return UnpackBFloat16(row.packed_weights(), row.num_ids());
    default:
      return absl::InvalidArgumentError(
          "weight_dtype must be FLOAT64 or BFLOAT16");
  }
}

}  // namespace

absl::StatusOr<Id128> ToId(const std::string& bytes, absl::string_view field) {
  if (bytes.size() != 16) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must have 16 bytes, not ", bytes.size()));
  }
  const Id128 id = Id128::FromBytes(bytes);
  if (id.is_none()) {  // as if it were left out
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must not be all zero"));
  }
  return id;
}

absl::StatusOr<int> ToLength(uint32_t value, absl::string_view field) {
  if (value > kMaxLength) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is far too large: ", value));
  }
  return static_cast<int>(value);
}

absl::Status CheckCacheSalt(absl::string_view salt) {
  if (salt.size() <= kMaxCacheSaltBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cache_salt has at most ",
                                                 kMaxCacheSaltBytes,
                                                 " bytes, not ", salt.size()));
}

v1::ReplyFormat ToProto(ReplyFormat format) {
  switch (format) {
    case ReplyFormat::kFull:
      return v1::REPLY_FORMAT_FULL;
    case ReplyFormat::kFullBFloat16:
      return v1::REPLY_FORMAT_FULL_BFLOAT16;
    case ReplyFormat::kSparse:
      return v1::REPLY_FORMAT_SPARSE;
    case ReplyFormat::kTokens:
      return v1::REPLY_FORMAT_TOKENS;
  }
  return v1::REPLY_FORMAT_UNSPECIFIED;
}

absl::StatusOr<ReplyFormat> FromProto(v1::ReplyFormat format) {
  switch (format) {
    case v1::REPLY_FORMAT_UNSPECIFIED:
    case v1::REPLY_FORMAT_FULL:
      return ReplyFormat::kFull;
    case v1::REPLY_FORMAT_FULL_BFLOAT16:
      return ReplyFormat::kFullBFloat16;
    case v1::REPLY_FORMAT_SPARSE:
      return ReplyFormat::kSparse;
    case v1::REPLY_FORMAT_TOKENS:
      return ReplyFormat::kTokens;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("unknown reply_format ", format));
  }
}

v1::AcceptanceRule ToProto(RuleKind rule) {
  switch (rule) {
    case RuleKind::kRejection:
      return v1::ACCEPTANCE_RULE_REJECTION;
    case RuleKind::kCoupled:
      return v1::ACCEPTANCE_RULE_COUPLED;
    case RuleKind::kBlock:
      return v1::ACCEPTANCE_RULE_BLOCK;
  }
  return v1::ACCEPTANCE_RULE_UNSPECIFIED;
}

absl::StatusOr<RuleKind> FromProto(v1::AcceptanceRule rule) {
  switch (rule) {
    case v1::ACCEPTANCE_RULE_UNSPECIFIED:
    case v1::ACCEPTANCE_RULE_REJECTION:
    case v1::ACCEPTANCE_RULE_GREEDY:
      return RuleKind::kRejection;
    case v1::ACCEPTANCE_RULE_COUPLED:
      return RuleKind::kCoupled;
    case v1::ACCEPTANCE_RULE_BLOCK:
      return RuleKind::kBlock;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("unknown acceptance_rule ", rule));
  }
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
  proto.set_cache_salt(header.cache_salt);
  proto.set_moved(header.is_moved);
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
  OUTRIDER_RETURN_IF_ERROR(CheckCacheSalt(proto.cache_salt()));
  header.cache_salt = proto.cache_salt();
  header.is_moved = proto.moved();
  return header;
}

v1::ReplyHeader ToProto(const ReplyHeader& header) {
  v1::ReplyHeader proto;
  proto.set_session_id(header.session.ToBytes());
  proto.set_incarnation(header.incarnation.ToBytes());
  proto.set_step(header.step);
  proto.set_cached_length(header.cached_length);
  SetDuration(header.compute_seconds, proto.mutable_compute_time());
  if (header.own_seconds > 0) {
    SetDuration(header.own_seconds, proto.mutable_own_compute_time());
  }
  if (header.queue_seconds > 0) {
    SetDuration(header.queue_seconds, proto.mutable_queue_time());
  }
  if (header.next_reprefill_in.has_value()) {
    SetDuration(*header.next_reprefill_in, proto.mutable_next_reprefill_in());
  }
  proto.set_reused_length(header.reused_length);
  proto.set_draining(header.is_draining);
  return proto;
}

absl::StatusOr<ReplyHeader> FromProto(const v1::ReplyHeader& proto) {
  ReplyHeader header = {
      .session = SessionId::FromBytes(proto.session_id()),
      .incarnation = Incarnation::FromBytes(proto.incarnation()),
      .step = proto.step(),
      .compute_seconds = std::max(0.0, ToSeconds(proto.compute_time())),
      .own_seconds = std::max(0.0, ToSeconds(proto.own_compute_time())),
      .queue_seconds = std::max(0.0, ToSeconds(proto.queue_time()))};
  OUTRIDER_ASSIGN_OR_RETURN(header.cached_length,
                            ToLength(proto.cached_length(), "cached_length"));
  OUTRIDER_ASSIGN_OR_RETURN(header.reused_length,
                            ToLength(proto.reused_length(), "reused_length"));
  if (proto.has_next_reprefill_in()) {
    header.next_reprefill_in = ToSeconds(proto.next_reprefill_in());
  }
  header.is_draining = proto.draining();
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

v1::SamplingParams ToProto(const SamplingParams& params) {
  v1::SamplingParams proto;
  proto.set_temperature(params.temperature);
  proto.set_top_k(params.top_k);
  proto.set_top_p(params.top_p);
  proto.set_min_p(params.min_p);
  proto.set_repetition_penalty(params.repetition_penalty);
  proto.set_presence_penalty(params.presence_penalty);
  proto.set_frequency_penalty(params.frequency_penalty);
  for (const LogitBias& entry : params.logit_bias) {
    v1::LogitBias& added = *proto.add_logit_bias();
    added.set_id(entry.id);
    added.set_bias(entry.bias);
  }
  if (IsLossy(params)) proto.set_lossy_lenience(params.lossy_lenience);
  return proto;
}

absl::StatusOr<SamplingParams> FromProto(const v1::SamplingParams& proto) {
  SamplingParams params = {.temperature = proto.temperature(),
                           .top_p = proto.top_p(),
                           .min_p = proto.min_p(),
                           .presence_penalty = proto.presence_penalty(),
                           .frequency_penalty = proto.frequency_penalty(),
                           .logit_bias = FromProto(proto.logit_bias())};
  if (proto.has_repetition_penalty()) {
    params.repetition_penalty = proto.repetition_penalty();
  }
  if (proto.has_lossy_lenience()) {
    params.lossy_lenience = proto.lossy_lenience();
  }
  OUTRIDER_ASSIGN_OR_RETURN(params.top_k, ToLength(proto.top_k(), "top_k"));
  OUTRIDER_RETURN_IF_ERROR(Validate(params));
  return params;
}

v1::DraftOptions ToProto(const DraftOptions& options) {
  const DraftOptions absent;
  DraftOverrides overrides;
  if (options.support_size != absent.support_size) {
    overrides.support_size = options.support_size;
  }
  if (options.support_mass != absent.support_mass) {
    overrides.support_mass = options.support_mass;
  }
  overrides.min_draft_probability = options.min_draft_probability;
  if (options.round_weights != absent.round_weights) {
    overrides.round_weights = options.round_weights;
  }
  return ToProto(overrides);
}

v1::DraftOptions ToProto(const DraftOverrides& overrides) {
  v1::DraftOptions proto;
  if (overrides.support_size.has_value()) {
    proto.set_support_size(*overrides.support_size);
  }
  if (overrides.support_mass.has_value()) {
    proto.set_support_mass(*overrides.support_mass);
  }
  if (overrides.min_draft_probability.has_value()) {
    proto.set_min_draft_probability(*overrides.min_draft_probability);
  }
  if (overrides.round_weights.has_value()) {
    proto.set_weight_dtype(*overrides.round_weights ? v1::DTYPE_BFLOAT16
                                                    : v1::DTYPE_FLOAT64);
  }
  return proto;
}

absl::StatusOr<DraftOverrides> FromProto(const v1::DraftOptions& proto) {
  DraftOverrides overrides;
  if (proto.has_support_size()) {
    OUTRIDER_ASSIGN_OR_RETURN(
        overrides.support_size,
        ToLength(proto.support_size(), "draft_options.support_size"));
  }
  if (proto.has_support_mass()) overrides.support_mass = proto.support_mass();
  if (proto.has_min_draft_probability()) {
    overrides.min_draft_probability = proto.min_draft_probability();
  }
  switch (proto.weight_dtype()) {
    case v1::DTYPE_UNSPECIFIED:
      return overrides;
    case v1::DTYPE_BFLOAT16:
    case v1::DTYPE_FLOAT64:
      overrides.round_weights = proto.weight_dtype() == v1::DTYPE_BFLOAT16;
      return overrides;
    default:
      return absl::InvalidArgumentError(
          "draft_options.weight_dtype must be FLOAT64 or BFLOAT16");
  }
}

std::vector<LogitBias> FromProto(
    const google::protobuf::RepeatedPtrField<v1::LogitBias>& proto) {
  std::vector<LogitBias> entries;
  entries.reserve(proto.size());
  for (const v1::LogitBias& entry : proto) {
    entries.push_back(
        {.id = static_cast<TokenId>(entry.id()), .bias = entry.bias()});
  }
  return entries;
}

uint64_t NumIds(const google::protobuf::RepeatedPtrField<v1::SparseRow>& rows) {
  uint64_t num_ids = 0;
  for (const v1::SparseRow& row : rows) num_ids += row.num_ids();
  return num_ids;
}

absl::Status CheckNumIds(uint64_t num_ids) {
  if (num_ids <= uint64_t{kMaxRowIds}) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the draft rows of a message have at most ", kMaxRowIds,
                   " ids together, not ", num_ids));
}

v1::SparseRow ToProto(absl::Span<const TokenId> support) {
  v1::SparseRow row;
  row.set_num_ids(static_cast<uint32_t>(support.size()));
  row.set_packed_ids(PackIds(support));
  return row;
}

v1::SparseRow ToProto(const Distribution& q) {
  v1::SparseRow row = ToProto(q.support());
  const bool narrow = FitBFloat16(q.weights());
  row.set_packed_weights(narrow ? PackBFloat16(q.weights())
                                : PackFloat64(q.weights()));
  row.set_weight_dtype(narrow ? v1::DTYPE_BFLOAT16 : v1::DTYPE_FLOAT64);
  return row;
}

absl::StatusOr<Distribution> FromProto(const v1::SparseRow& row,
                                       int vocab_size) {
  OUTRIDER_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                            UnpackIds(row.packed_ids(), row.num_ids()));
  OUTRIDER_ASSIGN_OR_RETURN(std::vector<double> weights, UnpackWeights(row));
  OUTRIDER_ASSIGN_OR_RETURN(
      Distribution q,
      Distribution::Create(std::move(ids), std::move(weights), vocab_size));
  const double tolerance =
      row.weight_dtype() == v1::DTYPE_BFLOAT16 ? kBFloat16Sum : kFloat64Sum;
  if (std::abs(q.total() - 1) > tolerance) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the weights of a draft row are probabilities and sum to 1, not to ",
        q.total()));
  }
  return q;
}

}  // namespace outrider
