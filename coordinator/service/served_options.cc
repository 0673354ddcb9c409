// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/served_options.h"

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "coordinator/nodes/refusal_reasons.h"
#include "core/base/error_reason.h"
#include "core/base/status_macros.h"
#include "core/wire/reply_codec.h"

namespace outrider {
namespace {

absl::Status NotServed(absl::string_view field, absl::string_view message) {
  return WithErrorMetadata(
      WithErrorReason(absl::FailedPreconditionError(message), kNotServedReason),
      kFieldMetadata, field);
}

}  // namespace

absl::Status CheckServed(RuleKind rule, const GenerationLimits& limits) {
  if (absl::c_linear_search(limits.rules, rule)) return absl::OkStatus();
  return NotServed("acceptance_rule",
                   "the verifier does not serve this acceptance_rule; "
                   "outrider describe lists those that it does");
}

std::optional<ReplyFormat> DefaultFormat(const std::optional<ReplyFormat>& own,
                                         RuleKind rule) {
  const bool is_for_rule =
      own.has_value() && CodecOf(*own).CheckRule(rule).ok();
  return is_for_rule ? own : std::nullopt;
}

absl::StatusOr<ReplyFormat> ChooseReplyFormat(
    const std::optional<ReplyFormat>& named, RuleKind rule,
    const GenerationLimits& limits) {
  const auto serves = [&limits](ReplyFormat format) {
    return absl::c_linear_search(limits.reply_formats, format);
  };
  if (named.has_value()) {
    OUTRIDER_RETURN_IF_ERROR(CodecOf(*named).CheckRule(rule));
    if (serves(*named)) return *named;
    return NotServed("reply_format",
                     "the verifier does not serve this reply_format; leave "
                     "it out for one that it does");
  }
  const auto own = DefaultFormat(limits.default_reply_format, rule);
  if (own.has_value()) {
    if (serves(*own)) return *own;
    return WithErrorReason(
        absl::FailedPreconditionError(
            "the verifier does not serve this coordinator's --reply-format; "
            "outrider describe lists those that it does: name one"),
        kCoordinatorFlagsReason);
  }
  // All give the same tokens; these with the fewest bytes. Even where TOKENS
  // needs the draft rows, a weight takes less than the p that SPARSE brings.
  for (const ReplyFormat thin : {ReplyFormat::kTokens, ReplyFormat::kSparse}) {
    if (serves(thin) && CodecOf(thin).CheckRule(rule).ok()) return thin;
  }
  return ReplyFormat::kFull;
}

}  // namespace outrider
