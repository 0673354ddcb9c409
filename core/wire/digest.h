// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_DIGEST_H_
#define OUTRIDER_CORE_WIRE_DIGEST_H_

#include <cstdint>
#include <string>

#include "core/base/session_id.h"
#include "core/session/siphash.h"

namespace outrider {

// Identifies the bytes of a Draft or a Verify: a step that comes twice must be
// the same, but for how it comes.
template <typename Request>
uint64_t ContentDigest(const SessionId& session, const Request& request) {
  if (request.header().moved()) {
    Request content = request;
    content.mutable_header()->clear_moved();
    return ContentDigest(session, content);
  }
  return SipHash24(session.bytes, request.SerializeAsString());
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_DIGEST_H_
