// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_COMMAND_BENCH_OPTIONS_H_
#define OUTRIDER_BENCH_COMMAND_BENCH_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/plan.h"
#include "bench/load/prompts.h"
#include "bench/load/trio.h"
#include "bench/network/network_link.h"
#include "bench/report/results_file.h"
#include "client/generation_request.h"
#include "core/rpc/tls_files.h"

// CLI11's, by name only: its header is a large one.
namespace CLI {
class App;
}  // namespace CLI

namespace outrider::bench {

// What `sweep` has for --rtt where it emulates the network.
inline constexpr char kSweptRtts[] = "0,1,5,20,50";

// `outrider bench run` and `sweep`, as the command line has them.
struct BenchFlags {
  // Absent: a deployment's own alone, or a list of a sweep's.
  std::optional<std::string> rtts = {};
  std::string ks = {};
  std::string schedules = "sequential";
  std::string concurrencies = {};
  std::optional<std::string> rates = {};
  int num_repeats = 1;

  std::optional<std::string> coordinator = {};
  bool insecure = false;
  TlsFiles tls = {};  // to the coordinator
  std::optional<std::string> target_model = {};
  std::optional<std::string> draft_model = {};
  std::string dtype = "auto";
  int num_threads = 0;
  bool binds_cores = false;
  bool simulate = false;
  Simulation simulation = {};
  std::optional<double> simulated_tokens_per_round = {};

  std::string network = "proxy";
  std::optional<double> drafter_rtt_ms = {};
  double jitter_ms = 0;
  double bandwidth_mbit = 0;
  double mean_bytes_to_drop = 0;
  double mean_bytes_to_reset = 0;
  uint64_t network_seed = 1;

  std::optional<std::string> prompts = {};
  std::string rule = "greedy";
  double temperature = 1;
  DraftOverrides drafting = {};
  double lossy_lenience = 1;
  bool prompt_lookup = false;
  std::optional<ReplyFormat> reply_format = {};
  int max_tokens = 48;
  double seconds = 4;
  int num_warm_up = 1;
  uint64_t seed = 1;
  double timeout_seconds = 120;

  std::string out = "bench-results";
  bool resume = false;
  bool dry_run = false;
  std::optional<double> fail_under = {};
};
// `is_sweep`: the defaults are lists.
void AddBenchFlags(CLI::App& command, bool is_sweep, BenchFlags& flags);

// The same, read and checked.
struct BenchOptions {
  BenchFlags flags = {};
  Grid grid = {};
  std::vector<Prompt> prompts = {};
  TrioOptions trio = {};  // where flags.coordinator is not set
  LinkOptions network = {};
  client::GenerationRequest request = {};  // all but prompt, seed and K
  Configuration configuration = {};        // without notes
};
// `programs` is the folder of this program; one that is no sweep takes no
// lists. INVALID_ARGUMENT says what to do
// instead; NOT_FOUND: a file.
absl::StatusOr<BenchOptions> ToBenchOptions(const BenchFlags& flags,
                                            bool is_sweep,
                                            const std::string& programs);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_COMMAND_BENCH_OPTIONS_H_
