// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_TIMED_STEP_H_
#define OUTRIDER_COORDINATOR_NODES_TIMED_STEP_H_

#include "absl/status/statusor.h"
#include "coordinator/nodes/node.h"
#include "coordinator/nodes/timer.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/wire/node_calls.h"

namespace outrider {

struct StepPatience {
  // Whether another verifier could answer. Else the step has all the time that
  // the node's stub allows.
  bool may_go_elsewhere = false;
  // Whether one could if there were one, as there may be soon: then a node that
  // falls silent is not waited for.
  bool may_move = false;
  int times = 1;  // the limit of the node's pace; beyond 1 silence is borne too
};

struct TimedReply {
  // DEADLINE_EXCEEDED, beside the stub's own failures: the node falls silent,
  // or takes too long over a text.
  absl::StatusOr<VerifyReply> reply;
  bool had_all_time = false;  // that there is for such a step
  bool is_silent = false;     // it was given up, as the node is
};

// Sends one step and waits for its reply, for as long as the node may take. The
// node's pace and pulse learn what came of it. What it refers to must outlive
// it.
Task<TimedReply> SendStep(VerifierNode& node, const VerifyCall& call,
                          StepPatience patience, Timer& timer,
                          Cancellation& cancellation);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_TIMED_STEP_H_
