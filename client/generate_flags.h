// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_GENERATE_FLAGS_H_
#define OUTRIDER_CLIENT_GENERATE_FLAGS_H_

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
  std::optional<std::string> prompt_file = {};     // "-": standard input
  std::optional<std::string> prompt_tokens = {};   // "1 2 3"
  std::optional<std::string> resume_tokens = {};   // "1 2 3", "-", "@FILE"
  std::optional<std::string> resume_model = {};    // "HASH:float32:avx2"
  std::optional<std::string> stop_token_ids = {};  // "1 2 3"
  std::optional<std::string> cache_salt = {};      // "SALT", "@FILE"
  std::vector<std::string> logit_bias = {};        // "17=-2.5"
  std::optional<std::string> rule = {};
  GenerationRequest request = {};  // all but the nine above
  std::string color = "auto";
  bool json = false;
  bool json_rounds = false;
  // The words of the command line, to show how a broken stream is resumed.
  std::vector<std::string> words = {"outrider", "generate"};

  bool wants_json() const { return json || json_rounds; }
};

void AddGenerateFlags(CLI::App& command, GenerateFlags& flags);

// Reads the prompt, and checks what flags can get wrong together.
// INVALID_ARGUMENT says what to do instead.
absl::StatusOr<GenerationRequest> ToRequest(const GenerateFlags& flags,
                                            std::istream& in);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_GENERATE_FLAGS_H_
