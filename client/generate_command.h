// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_GENERATE_COMMAND_H_
#define OUTRIDER_CLIENT_GENERATE_COMMAND_H_

#include "client/command.h"
#include "client/generate_flags.h"
#include "client/generation_request.h"
#include "core/base/cancellation.h"

namespace outrider::client {

// Streams the text to io.out as rounds commit, then a summary to io.err; or
// one JSON object to io.out. Where the stream breaks, either says how it is
// resumed. The exit status; kExitInterrupted where the cancellation came first.
int Generate(const GenerateFlags& flags, const GenerationRequest& request,
             const CommandIo& io, Cancellation& cancellation);

// All of it, on the process's own streams and signals.
int GenerateCommand(const GenerateFlags& flags);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_GENERATE_COMMAND_H_
