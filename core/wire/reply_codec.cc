// SPDX-License-Identifier: Apache-2.0
#include "core/wire/reply_codec.h"

#include "core/wire/reply_codecs.h"

namespace outrider {

absl::Status ReplyCodec::CheckRule(RuleKind /*rule*/) const {
  return absl::OkStatus();
}

const ReplyCodec& CodecOf(ReplyFormat format) {
  static const FullReply full(/*is_bfloat16=*/false);
  static const FullReply full_bfloat16(/*is_bfloat16=*/true);
  static const SparseReply sparse;
  static const TokensReply tokens;
  switch (format) {
    case ReplyFormat::kFull:
      return full;
    case ReplyFormat::kFullBFloat16:
      return full_bfloat16;
    case ReplyFormat::kSparse:
      return sparse;
    case ReplyFormat::kTokens:
      break;
  }
  return tokens;
}

}  // namespace outrider
