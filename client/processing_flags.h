// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_PROCESSING_FLAGS_H_
#define OUTRIDER_CLIENT_PROCESSING_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/generate_flags.h"
#include "client/generation_request.h"

namespace outrider::client {

// The flags of `outrider generate` that say what is done to the target's
// logits, and what is told of them.
void AddProcessingFlags(CLI::App& command, GenerateFlags& flags);

// ID=BIAS each. INVALID_ARGUMENT says what is wrong with the first bad one.
absl::StatusOr<std::vector<LogitBias>> ParseLogitBias(
    const std::vector<std::string>& entries);

// INVALID_ARGUMENT where log-probabilities would be asked for, and not shown.
absl::Status CheckLogprobsFlags(const GenerateFlags& flags);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_PROCESSING_FLAGS_H_
