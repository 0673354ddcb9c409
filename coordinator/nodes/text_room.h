// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_TEXT_ROOM_H_
#define OUTRIDER_COORDINATOR_NODES_TEXT_ROOM_H_

#include "core/wire/node_calls.h"
#include "core/wire/node_description.h"

namespace outrider {

// The longest text that the node can have: it ends with the context, or with
// the memory for keys and values that all its sessions share.
int RoomOf(const NodeDescription& node);
// The text of a step, its drafts or what the verifier may go on with, and both:
// what it needs room for.
int TextLengthOf(const VerifyCall& call);
int NumAfterText(const VerifyCall& call);
int LengthOf(const VerifyCall& call);
// How many drafts the node takes after so long a text.
int MostDrafts(const NodeDescription& node, int text_length);
// Whether it takes as many as the call has.
bool TakesDrafts(const NodeDescription& node, const VerifyCall& call);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_TEXT_ROOM_H_
