// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_LINKED_DRAFTER_H_
#define OUTRIDER_TESTS_SIMULATION_LINKED_DRAFTER_H_

#include <chrono>
#include <memory>
#include <utility>

#include "coordinator/nodes/shared_stubs.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/ways.h"

namespace outrider::testing {

// The pool's way to a drafter, over the network. It writes down what was
// drafted for which text, looks at what a session says, and makes the answers
// of a drafter that lies.
class LinkedDrafter final : public SharedDraftStub {
 public:
  using DrafterWays = Ways<Cluster::Drafter>;

  LinkedDrafter(Cluster& cluster, SimulatedPool& /*pool*/,
                std::shared_ptr<DrafterWays> ways)
      : cluster_(cluster), ways_(std::move(ways)) {}

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override;
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation&) override {
    return SimulatedStub<Cluster::Drafter>::Describe(ways_->way(), timeout);
  }

 private:
  // Whether its drafts are still what was drafted.
  bool Lie(DraftReply& reply);

  Cluster& cluster_;
  const std::shared_ptr<DrafterWays> ways_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_LINKED_DRAFTER_H_
