// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/session_assembly.h"

#include "core/sampling/make_rule.h"

namespace outrider {
namespace {

std::optional<NodeDraftClient> MakeDrafter(const GenerationRequest& request,
                                           const NodePool::Pair& pair) {
  if (pair.drafter == nullptr) return std::nullopt;
  return std::optional<NodeDraftClient>(
      std::in_place, *pair.drafter,
      NodeDraftClient::Options{
          .context_length = pair.drafter_description.context_length,
          .drafting = request.draft_options});
}

std::optional<OptionalDraftClient::Drafter> Shared(
    std::optional<NodeDraftClient>& node, const GenerationRequest& request,
    const NodePool::Pair& pair) {
  if (!node.has_value()) return std::nullopt;
  return OptionalDraftClient::Drafter{
      .node = *node,
      .breaker = pair.drafter->breaker(),
      .pace = pair.drafter->pace(request.rule, IsGreedy(request.sampling))};
}

}  // namespace

SessionAssembly::SessionAssembly(const Parts& parts)
    : session_(parts.session),
      node_drafter_(MakeDrafter(parts.request, parts.pair)),
      optional_drafter_(Shared(node_drafter_, parts.request, parts.pair)),
      lookup_(optional_drafter_),
      verifier_(*parts.pair.verifier, parts.request.reply_format),
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

Task<absl::StatusOr<GenerationUpdate>> SessionAssembly::Run() {
  absl::StatusOr<GenerationUpdate> last = co_await generation_.Run();
  co_await optional_drafter_.Stop(session_);
  co_return last;
}

}  // namespace outrider
