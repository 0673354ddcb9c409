// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/simulated_nodes.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/node/local_node.h"
#include "drafter/drafter_service.h"
#include "verifier/verifier_service.h"

namespace outrider {
namespace {

NodeDescription Description() {
  return {.vocab_size = kSimulatedVocab,
          .context_length = kSimulatedContext,
          .max_draft_tokens = kSimulatedDrafts};
}

template <typename MakeService>
Served ServeNode(MakeService make_service, const std::string& listen,
                 SimulatedLm::SleepUntil pass) {
  auto node = std::make_shared<LocalNode>(
      std::make_unique<SimulatedLm>(
          SimulatedLm::Options{.vocab_size = kSimulatedVocab,
                               .context_length = kSimulatedContext,
                               .sleep_until = std::move(pass)}),
      Description(),
      [&](Node& made) { return make_service(made, Description()); },
      LocalNode::Options{
          .listen = listen,
          .scheduling = {.sessions = {.num_blocks = kSimulatedContext / 8}}});
  return {.address = node->address(), .server = node};
}

}  // namespace

SimulatedLm::SleepUntil PassThatReads(int weights_mib) {
  auto weights = std::make_shared<std::vector<uint64_t>>(
      (static_cast<size_t>(weights_mib) << 20) / sizeof(uint64_t), 1);
  return [weights](auto) {
    const uint64_t sum =
        std::accumulate(weights->begin(), weights->end(), uint64_t{0});
    OUTRIDER_CHECK(sum == weights->size());
  };
}

Served ServeSimulatedDrafter(const std::string& listen) {
  return ServeNode(MakeDrafterService, listen, [](auto) {});
}

Served ServeSimulatedVerifier(const std::string& listen,
                              SimulatedLm::SleepUntil pass) {
  return ServeNode(MakeVerifierService, listen, std::move(pass));
}

}  // namespace outrider
