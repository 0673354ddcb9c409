// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_NODES_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_NODES_H_

#include <memory>
#include <string>

#include "coordinator/nodes/session_drafter.h"
#include "coordinator/nodes/session_verifier.h"
#include "coordinator/nodes/verifier_bounds.h"
#include "core/wire/model_identity.h"
#include "core/wire/node_description.h"

namespace outrider {

// What the verifier of a resumed session has to be.
struct WantedModel {
  ModelIdentity model = {};
  Sameness sameness = Sameness::kLaw;
  bool operator==(const WantedModel&) const = default;
};

// A session's nodes, and what they said they are, for as long as it holds this.
struct SessionNodes {
  std::unique_ptr<SessionVerifier> verifier = nullptr;
  NodeDescription verifier_description = {};
  VerifierBounds bounds = {};                         // by those of its model
  std::unique_ptr<SessionDrafter> drafter = nullptr;  // null: none configured
  NodeDescription drafter_description = {};           // of the first it had
  // What the nodes share the session's cached texts by: its request's salt, or
  // one that is its own, for whoever resumes it. Empty: they share nothing.
  std::string cache_salt = {};

  bool has_drafter() const { return drafter != nullptr && drafter->has_node(); }
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_NODES_H_
