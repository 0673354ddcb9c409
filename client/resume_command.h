// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_RESUME_COMMAND_H_
#define OUTRIDER_CLIENT_RESUME_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/generation_request.h"

namespace outrider::client {

// What the flags of a resume are set to.
struct ResumeFlags {
  std::string seed = {};    // --seed
  std::string model = {};   // --resume-model
  std::string tokens = {};  // --resume-tokens
  std::string salt = {};    // --cache-salt; empty: there is none
};

// What a stream's ResumeRequest, which names seed and model, comes to.
ResumeFlags ToResumeFlags(const GenerationRequest& request);

// Whether the request continues anything, and not in vain: what is wrong with
// it is wrong everywhere, and what verifiers die of they die of again. A model
// that is not served now (ABORTED, FAILED_PRECONDITION) may be again, as after
// a roll-out that is taken back.
bool CanResume(const GenerationRequest& request, const absl::Status& failure);

// Whether the tokens are more than an argument can have: only bash reads the
// command then.
bool NeedsBash(const ResumeFlags& flags);

// The command line, quoted for a shell, that continues what the command line
// `words` began.
std::string ResumeCommand(const std::vector<std::string>& words,
                          const ResumeFlags& flags);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_RESUME_COMMAND_H_
