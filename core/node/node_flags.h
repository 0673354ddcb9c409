// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_FLAGS_H_
#define OUTRIDER_CORE_NODE_NODE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "core/node/simulation.h"
#include "core/rpc/server_flags.h"
#include "core/session/session_table.h"

namespace outrider {

// The flags that drafter and verifier share.
struct NodeFlags {
  std::string model = {};
  std::string device = "cpu";
  std::string dtype = "auto";
  int max_draft_tokens = 16;
  int max_queue_length = 1024;
  int lease_seconds = 30;
  bool measure = false;
  bool json = false;
  SimulationFlags simulation = {};
  SessionTable::Options sessions = {};
  ServerFlags server = {};
};

void AddNodeFlags(CLI::App& app, NodeFlags& flags);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_FLAGS_H_
