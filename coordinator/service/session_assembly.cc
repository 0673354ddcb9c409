// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/session_assembly.h"

#include "core/sampling/make_rule.h"

namespace outrider {
namespace {

OptionalDraftClient::Choose ChooseOf(const SessionAssembly::Parts& parts) {
  return [drafter = parts.nodes.drafter.get(),
          drafting = parts.request.draft_options,
          schedule = parts.request.schedule](Session& session) {
    return drafter == nullptr ? std::nullopt
                              : drafter->Choose(session, drafting, schedule);
  };
}

// With a K of 0 nothing is drafted, whatever the text repeats.
bool LooksUp(const GenerationRequest& request) {
  return request.prompt_lookup && request.num_speculative_tokens > 0;
}

}  // namespace

SessionAssembly::SessionAssembly(const Parts& parts)
    : session_(parts.session),
      optional_drafter_(ChooseOf(parts), parts.request.draft_length_mode),
      ahead_drafter_(optional_drafter_, parts.request.schedule),
      lookup_(ahead_drafter_, parts.request.draft_length_mode),
      // Where the text is looked up, each token may begin what it had before.
      run_(LooksUp(parts.request) ? 1 : parts.max_plain_tokens,
           [this] { return optional_drafter_.may_have_company(); }),
      verifier_(*parts.nodes.verifier, parts.request.reply_format, &run_),
      rule_(
          MakeRule(parts.request.rule, parts.request.sampling.lossy_lenience)),
      policy_(parts.request.num_speculative_tokens),
      decoder_({.drafter = LooksUp(parts.request)
                               ? static_cast<DraftClient&>(lookup_)
                               : ahead_drafter_,
                .verifier = verifier_,
                .rule = *rule_,
                .policy = policy_}),
      stop_({.eos_ids = parts.request.eos_ids,
             .stop_token_ids = parts.request.stop_token_ids,
             .max_length = parts.request.max_length}),
      text_(parts.tokenizer,
            parts.session.committed().tokens().first(
                parts.session.prompt_length()),
            parts.request.stop_strings),
      generation_({.session = parts.session,
                   .decoder = decoder_,
                   .stop = stop_,
                   .text = text_,
                   .sink = parts.sink}) {}

Task<absl::StatusOr<GenerationUpdate>> SessionAssembly::Run() {
  absl::StatusOr<GenerationUpdate> last = co_await generation_.Run();
  co_await ahead_drafter_.Stop(session_);
  co_return last;
}

}  // namespace outrider
