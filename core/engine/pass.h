// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_PASS_H_
#define OUTRIDER_CORE_ENGINE_PASS_H_

#include <memory>
#include <utility>
#include <vector>

#include "core/engine/job.h"
#include "core/model/causal_lm.h"

namespace outrider {

// One pass of a model, and whose work is in it.
struct Pass {
  struct Part {
    Job* job = nullptr;
    int num_tokens = 0;  // that it runs, of what the job wants
    int num_extensions = 1;
    // Null once the job waits for its next pass, or is in it, while this one
    // runs: then that has the job.
    std::unique_ptr<Job> owner = {};
  };

  // An empty one, in the memory of one that has ended.
  static Pass InMemoryOf(Pass ended, Job::Clock::time_point start) {
    ended.extensions.clear();
    ended.parts.clear();
    return {.extensions = std::move(ended.extensions),
            .parts = std::move(ended.parts),
            .start = start};
  }

  std::vector<Extension> extensions = {};  // of the parts, in their order
  std::vector<Part> parts = {};
  int num_rows = 0;    // tokens run, over all of them
  int num_chunks = 0;  // of prompts
  // Its launch, or the end of the pass before it where that came later.
  Job::Clock::time_point start = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_PASS_H_
