// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_SCHEDULING_OPTIONS_H_
#define OUTRIDER_CORE_ENGINE_SCHEDULING_OPTIONS_H_

#include "core/session/node_sessions.h"

namespace outrider {

// How much is in a pass, and how many sessions and pieces of work a node takes.
struct SchedulingOptions {
  // Rows of a pass up to which prompts join those that run (ReadyWork).
  int prefill_chunk = 128;
  int max_rows = 1024;          // of a pass, but for its chunks of prompts
  int max_queue_length = 1024;  // pieces of work; openings beyond are refused
  double max_hold = 1;          // of what a pass costs besides its rows
  double max_ahead = 0.5;       // of the same, for work ahead beside others
  int num_in_flight = 1;        // passes at a time: CausalLm's
  NodeSessions::Options sessions = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_SCHEDULING_OPTIONS_H_
