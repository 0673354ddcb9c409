// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_PROMPT_H_
#define OUTRIDER_COORDINATOR_SERVICE_PROMPT_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coordinator/service/generation_request.h"
#include "core/base/token.h"

namespace outrider {

// A prompt's tokens; both functions refuse one without room. INVALID_ARGUMENT:
// the model's context has none; FAILED_PRECONDITION: the memory of the
// verifiers that are ready has none.
absl::StatusOr<std::vector<TokenId>> Tokenize(absl::string_view text,
                                              const GenerationLimits& limits);
// INVALID_ARGUMENT also where there are none, or some are not of the model's.
absl::Status CheckPrompt(absl::Span<const TokenId> prompt,
                         const GenerationLimits& limits);
// They take the place of a text, which may be many times as long.
void KeepTokens(absl::Span<const TokenId> prompt, v1::GenerateRequest& proto);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_PROMPT_H_
