// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_LOAD_GENERATOR_H_
#define OUTRIDER_BENCH_LOAD_LOAD_GENERATOR_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "bench/load/plan.h"
#include "bench/load/prompts.h"
#include "client/generation_client.h"
#include "client/generation_report.h"
#include "core/base/cancellation.h"

namespace outrider::bench {

// What became of one request. Times count from when it was due: in an open loop
// a late start is the system's fault, not the request's.
struct RequestResult {
  absl::Status status = {};
  client::GenerationReport report = {};
  std::chrono::nanoseconds duration = {};
};

struct LoadResult {
  std::vector<RequestResult> requests = {};
  std::chrono::nanoseconds wall_time = {};
  bool ran_out_of_prompts = false;
};

struct LoadOptions {
  Load load = {};
  client::GenerationRequest request = {};  // all but prompt and seed
  std::chrono::nanoseconds duration = {};  // new requests are begun this long
  std::chrono::milliseconds request_timeout = std::chrono::seconds(120);
  int num_warm_up = 0;  // requests before, one after the other
  uint64_t seed = 0;    // of the arrivals; the first request's, then the next
};

// Puts the load on a coordinator for some time, and waits for what was begun;
// each prompt is used at most once, and each user has one request at least.
// Blocks. A cancellation ends it with what there is by then.
LoadResult GenerateLoad(client::GenerationClient& client,
                        absl::Span<const Prompt> prompts,
                        const LoadOptions& options, Cancellation& cancellation);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_LOAD_GENERATOR_H_
