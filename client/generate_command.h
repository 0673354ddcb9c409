// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_GENERATE_COMMAND_H_
#define OUTRIDER_CLIENT_GENERATE_COMMAND_H_

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/command.h"
#include "client/generation_request.h"

namespace outrider::client {

// `outrider generate`, as the command line has it.
struct GenerateFlags {
  CoordinatorFlags target = {};
  std::optional<std::string> prompt = {};
  std::optional<std::string> prompt_file = {};    // "-": standard input
  std::optional<std::string> prompt_tokens = {};  // "1 2 3"
  std::optional<std::string> resume_tokens = {};  // "1 2 3"
  std::vector<std::string> logit_bias = {};       // "17=-2.5"
  GenerationRequest request = {};                 // all but the five above
  std::string color = "auto";
  bool json = false;
};

void AddGenerateFlags(CLI::App& command, GenerateFlags& flags);

// Reads the prompt, and checks what flags can get wrong together.
// INVALID_ARGUMENT says what to do instead.
absl::StatusOr<GenerationRequest> ToRequest(const GenerateFlags& flags,
                                            std::istream& in);

// Streams the text to io.out as rounds commit, then a summary to io.err; or
// one JSON object to io.out. The exit status; kExitInterrupted where the
// cancellation came first.
int Generate(const GenerateFlags& flags, const GenerationRequest& request,
             const CommandIo& io, Cancellation& cancellation);

// All of it, on the process's own streams and signals.
int GenerateCommand(const GenerateFlags& flags);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_GENERATE_COMMAND_H_
