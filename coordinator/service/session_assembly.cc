// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/session_assembly.h"

#include <chrono>

#include "core/sampling/make_rule.h"

namespace outrider {
namespace {

constexpr std::chrono::seconds kDescribeTimeout(5);

std::optional<NodeDraftClient> MakeDrafter(const GenerationRequest& request,
                                           const NodePool::Pair& pair) {
  if (pair.drafter == nullptr) return std::nullopt;
  return std::optional<NodeDraftClient>(
      std::in_place, pair.drafter->stub,
      NodeDraftClient::Options{
          .context_length = pair.drafter_description.context_length,
          .drafting = request.draft_options});
}

SameWeightsStub::Options SameModel(const NodePool::Pair& pair) {
  return {.node = pair.verifier->stub,
          .describe =
              [&pair](Cancellation& cancellation) {
                return pair.verifier->stub.Describe(kDescribeTimeout,
                                                    cancellation);
              },
          .weights_hash = pair.verifier_description.weights_hash};
}

}  // namespace

SessionAssembly::SessionAssembly(const Parts& parts)
    : node_drafter_(MakeDrafter(parts.request, parts.pair)),
      optional_drafter_(node_drafter_.has_value() ? &*node_drafter_ : nullptr,
                        node_drafter_.has_value() ? parts.pair.drafter->breaker
                                                  : no_breaker_),
      lookup_(optional_drafter_),
      verifier_stub_(SameModel(parts.pair)),
      verifier_(verifier_stub_, parts.request.reply_format),
      rule_(
          MakeRule(parts.request.rule, parts.request.sampling.lossy_lenience)),
      policy_(parts.request.num_speculative_tokens),
      decoder_({.drafter = parts.request.prompt_lookup
                               ? static_cast<DraftClient&>(lookup_)
                               : optional_drafter_,
                .verifier = verifier_,
                .rule = *rule_,
                .policy = policy_}),
      stop_(parts.request.eos_ids, parts.request.max_length),
      text_(parts.tokenizer, parts.request.stop_strings),
      generation_({.session = parts.session,
                   .decoder = decoder_,
                   .stop = stop_,
                   .text = text_,
                   .sink = parts.sink}) {}

}  // namespace outrider
