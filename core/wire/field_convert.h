// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_FIELD_CONVERT_H_
#define OUTRIDER_CORE_WIRE_FIELD_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/wire/node_calls.h"
#include "outrider/v1/types.pb.h"

namespace outrider {

// The parts that several messages share; see convert.h.

// Never none, which 16 zero bytes would be.
absl::StatusOr<Id128> ToId(const std::string& bytes, absl::string_view field);
absl::StatusOr<int> ToLength(uint32_t value, absl::string_view field);
absl::Status CheckCacheSalt(absl::string_view salt);

template <typename Field>
std::vector<TokenId> ToTokens(const Field& field) {
  return {field.begin(), field.end()};
}

template <typename Field>
void SetTokens(absl::Span<const TokenId> tokens, Field* field) {
  field->Add(tokens.begin(), tokens.end());
}

v1::ReplyFormat ToProto(ReplyFormat format);
// UNSPECIFIED is FULL.
absl::StatusOr<ReplyFormat> FromProto(v1::ReplyFormat format);

// GREEDY is the rejection rule; that it needs temperature 0 is not checked.
v1::AcceptanceRule ToProto(RuleKind rule);
absl::StatusOr<RuleKind> FromProto(v1::AcceptanceRule rule);

v1::RequestHeader ToProto(const RequestHeader& header);
absl::StatusOr<RequestHeader> FromProto(const v1::RequestHeader& proto);

v1::ReplyHeader ToProto(const ReplyHeader& header);
absl::StatusOr<ReplyHeader> FromProto(const v1::ReplyHeader& proto);

v1::Miss ToProto(const Miss& miss);
absl::StatusOr<Miss> FromProto(const v1::Miss& proto);

v1::SamplingParams ToProto(const SamplingParams& params);
// Token ids are not held against a vocabulary here.
absl::StatusOr<SamplingParams> FromProto(const v1::SamplingParams& proto);

// What is Draft's default is left out, and costs nothing.
v1::DraftOptions ToProto(const DraftOptions& options);
v1::DraftOptions ToProto(const DraftOverrides& overrides);
// Absent fields stay so; ranges are not checked.
absl::StatusOr<DraftOverrides> FromProto(const v1::DraftOptions& proto);

// Keeps the order given, and checks nothing.
std::vector<LogitBias> FromProto(
    const google::protobuf::RepeatedPtrField<v1::LogitBias>& proto);

// INVALID_ARGUMENT where there are more than kMaxRowIds.
absl::Status CheckNumIds(uint64_t num_ids);
uint64_t NumIds(const google::protobuf::RepeatedPtrField<v1::SparseRow>& rows);

// Ids alone.
v1::SparseRow ToProto(absl::Span<const TokenId> support);
// Loses nothing, whatever the drafter rounded the weights to.
v1::SparseRow ToProto(const Distribution& q);
absl::StatusOr<Distribution> FromProto(const v1::SparseRow& row,
                                       int vocab_size);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_FIELD_CONVERT_H_
