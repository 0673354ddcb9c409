// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_MESSAGE_LIMITS_H_
#define OUTRIDER_CORE_WIRE_MESSAGE_LIMITS_H_

#include "core/wire/node_description.h"

namespace outrider {

// The largest messages that a node and its callers may have to receive, in
// bytes of protobuf: whichever reply format and draft options are asked for,
// whole rows in float64 and scores of all tokens included.
struct MessageLimits {
  int draft_request = 0;
  int draft_response = 0;
  int verify_request = 0;
  int verify_response = 0;
};

// They follow from the vocabulary's size, K and the context that the node
// describes; at most what protobuf can carry.
MessageLimits LimitsOf(const NodeDescription& node);

// The largest Generate: two million token ids, or as many bytes of text. A
// coordinator has to receive before it knows a model.
inline constexpr int kMaxGenerateRequestBytes = 8 << 20;

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_MESSAGE_LIMITS_H_
