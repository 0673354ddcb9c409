// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_REPLY_FORMAT_NAMES_H_
#define OUTRIDER_CORE_WIRE_REPLY_FORMAT_NAMES_H_

#include <map>
#include <string>

#include "core/wire/node_calls.h"

namespace outrider {

// Flags have these names.
inline const std::map<std::string, ReplyFormat>& ReplyFormatNames() {
  static const std::map<std::string, ReplyFormat> names = {
      {"full", ReplyFormat::kFull},
      {"full-bfloat16", ReplyFormat::kFullBFloat16},
      {"sparse", ReplyFormat::kSparse},
      {"tokens", ReplyFormat::kTokens}};
  return names;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_REPLY_FORMAT_NAMES_H_
