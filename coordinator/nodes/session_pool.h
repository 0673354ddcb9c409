// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_POOL_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_POOL_H_

#include "coordinator/nodes/node.h"
#include "coordinator/nodes/node_group.h"
#include "coordinator/nodes/node_releases.h"
#include "coordinator/nodes/session_moves.h"
#include "coordinator/nodes/timer.h"
#include "coordinator/nodes/verifier_losses.h"
#include "coordinator/nodes/waiting_room.h"
#include "core/base/session_id.h"

namespace outrider {

// What sessions need of the pool whose nodes they are on: NodePool in
// production, one without gRPC and threads in a simulation.
class SessionPool {
 public:
  virtual ~SessionPool() = default;

  virtual NodeGroup<VerifierNode>::Choice ChooseVerifier(
      const SessionId& session, const NodeGroup<VerifierNode>::Fits& fits) = 0;
  virtual NodeGroup<DrafterNode>::Choice ChooseDrafter(
      const SessionId& session, const NodeGroup<DrafterNode>::Fits& fits) = 0;
  // It has answered as this model: where it was known as another one it gets no
  // new sessions before it was asked anew, which is done at once.
  virtual void Doubt(const VerifierNode& node, const ModelIdentity& model) = 0;
  virtual void Doubt(const DrafterNode& node, const ModelIdentity& model) = 0;
  // It has said to a session that it is this now, between two questions.
  virtual void Correct(const VerifierNode& node,
                       const NodeDescription& said) = 0;
  // Cheap, as it is asked before each step.
  virtual int NumVerifiersReady() const = 0;
  bool HasVerifier() const { return NumVerifiersReady() > 0; }

  virtual Timer& timer() = 0;
  virtual WaitingRoom& waiting_room() = 0;
  virtual NodeReleases& releases() = 0;
  virtual SessionMoves& moves() = 0;
  virtual VerifierLosses& losses() = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_POOL_H_
