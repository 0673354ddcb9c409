// SPDX-License-Identifier: Apache-2.0
#include "core/wire/read_reply.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/wire/convert.h"
#include "core/wire/reply_codec.h"
#include "core/wire/reply_parts.h"

namespace outrider {
namespace {

// To FromProto a wrong field is an invalid argument, whoever sent it.
absl::Status MalformedBy(absl::string_view node, const absl::Status& status) {
  return absl::InternalError(absl::StrCat(
      "the ", node, " sent a malformed reply: ", status.message()));
}

}  // namespace

absl::StatusOr<VerifyReply> ReadReply(v1::VerifyResponse response,
                                      const VerifyCall& call, int vocab_size) {
  absl::StatusOr<VerifyReply> reply = FromProto(std::move(response), call);
  if (!reply.ok()) return MalformedBy("verifier", reply.status());
  OUTRIDER_RETURN_IF_ERROR(CheckVocabulary(*reply, vocab_size));
  if (!std::holds_alternative<Miss>(reply->outcome)) {
    OUTRIDER_RETURN_IF_ERROR(
        CodecOf(call.reply_format).CheckReply(call, *reply));
  }
  return reply;
}

absl::StatusOr<DraftReply> ReadReply(const v1::DraftResponse& response,
                                     const DraftCall& call, int vocab_size) {
  absl::StatusOr<DraftReply> reply = FromProto(response, call, vocab_size);
  if (!reply.ok()) return MalformedBy("drafter", reply.status());
  return reply;
}

}  // namespace outrider
