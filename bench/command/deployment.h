// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_COMMAND_DEPLOYMENT_H_
#define OUTRIDER_BENCH_COMMAND_DEPLOYMENT_H_

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "bench/command/bench_options.h"
#include "client/generation_client.h"
#include "core/base/cancellation.h"

namespace outrider::bench {

// Blocks until the coordinator has what the run needs: a verifier, and a
// drafter for K above 0. UNAVAILABLE: they do not come; INVALID_ARGUMENT: they
// cannot do what is asked for.
absl::StatusOr<client::Deployment> FindNodes(const BenchOptions& options,
                                             const std::string& coordinator,
                                             std::chrono::seconds longest,
                                             const Cancellation& cancellation);

// Puts what the nodes say of themselves into what is binding, so that a resumed
// run has to find the same models again. `has_drafts`: K is above 0 somewhere.
void Bind(const client::Deployment& deployment, bool has_drafts,
          Configuration& configuration);
// The same of models that are yet to be loaded, by their files. A timing model
// has none. Reads all of them; a cancellation ends that, and what is bound
// then means nothing.
void BindModels(const TrioOptions& options, Configuration& configuration,
                const Cancellation& cancellation);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_COMMAND_DEPLOYMENT_H_
