// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_DIGEST_H_
#define OUTRIDER_CORE_WIRE_DIGEST_H_

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <string>

#include "core/base/session_id.h"
#include "core/session/siphash.h"

namespace outrider {

// Identifies a request's bytes: a step that comes twice must be the same.
inline uint64_t ContentDigest(const SessionId& session,
                              const google::protobuf::MessageLite& request) {
  return SipHash24(session.bytes, request.SerializeAsString());
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_DIGEST_H_
