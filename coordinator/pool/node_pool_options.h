// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_NODE_POOL_OPTIONS_H_
#define OUTRIDER_COORDINATOR_POOL_NODE_POOL_OPTIONS_H_

#include <chrono>
#include <string>
#include <vector>

#include "core/rpc/channel.h"
#include "core/rpc/tls_files.h"
#include "core/wire/expected_weights.h"

namespace outrider {

struct NodePoolOptions {
  std::vector<std::string> drafters = {};  // HOST:PORT, names or addresses
  std::vector<std::string> verifiers = {};
  std::chrono::milliseconds resolve_period = std::chrono::seconds(30);
  std::string tokenizer_hash = {};        // the coordinator's; empty: none
  ExpectedWeights expected_weights = {};  // of verifiers
  // One for every node. Certificates are checked for the name resolved.
  ChannelOptions channel = {};
  TlsFiles tls = {};  // of the channel's credentials: errors name them
  std::chrono::milliseconds draft_timeout = std::chrono::seconds(2);
  std::chrono::milliseconds verify_timeout = std::chrono::seconds(30);
  // Added to both for each token that a cache lacks.
  std::chrono::milliseconds timeout_per_token = std::chrono::milliseconds(20);
  int max_waiting = 64;  // new sessions, for room on a verifier
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_NODE_POOL_OPTIONS_H_
