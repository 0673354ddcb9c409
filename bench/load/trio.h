// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_TRIO_H_
#define OUTRIDER_BENCH_LOAD_TRIO_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/child_process.h"
#include "bench/load/core_placement.h"
#include "bench/load/simulation.h"
#include "bench/network/delay_proxy.h"
#include "bench/network/echo.h"
#include "bench/network/far_end.h"
#include "core/base/cancellation.h"

namespace outrider::bench {

struct TrioOptions {
  std::string programs = {};  // folder of the three programs
  std::string target_model = {};
  std::string draft_model = {};
  std::string dtype = "auto";
  int num_threads = 0;  // of a node's pass; 0: as a node has it
  std::optional<Simulation> simulation = {};
  int max_draft_tokens = 16;
  bool uses_tunnels = false;  // in place of proxies; needs root
  // Where the nodes run. Coordinators run where the calling thread does.
  std::optional<CorePlacement> placement = {};
};

// The round trips between the coordinator and its nodes.
struct RoundTrips {
  double drafter_ms = 0;
  double verifier_ms = 0;
};

// Verifier, drafter and coordinator on this machine, each a process of its own,
// and between coordinator and nodes a network: by DelayProxy, with a second
// coordinator without proxies for a network without any effect, or by Tunnel.
// Thread-compatible.
class Trio {
 public:
  // UNAVAILABLE says what a program said where it did not start;
  // PERMISSION_DENIED: tunnels need root; CANCELLED.
  static absl::StatusOr<std::unique_ptr<Trio>> Start(
      const TrioOptions& options, const LinkOptions& network,
      Cancellation& cancellation);

  // Sets the network and says where to send requests to. FAILED_PRECONDITION:
  // an echo through it, without the limit of bandwidth, was off by more than
  // 5 % + 0.3 ms and twice the jitter, three times.
  absl::StatusOr<std::string> Connect(const RoundTrips& nominal);
  // UNAVAILABLE with its last words, where one of the programs has ended.
  absl::Status CheckPrograms();
  // The coordinator that has no network to its nodes, then the one that has.
  std::vector<std::string> coordinators() const {
    return {direct_coordinator_, coordinator_};
  }
  // What the echo measured at the last Connect.
  const RoundTrips& achieved() const { return achieved_; }

 private:
  Trio(const LinkOptions& network, Cancellation& cancellation)
      : network_(network), cancellation_(cancellation) {}

  absl::Status StartNodes(const TrioOptions& options);
  absl::Status StartProxies();
  absl::StatusOr<std::string> StartCoordinator(const TrioOptions& options,
                                               const std::string& verifier,
                                               const std::string& drafter);
  absl::StatusOr<std::string> StartProgram(
      const TrioOptions& options, const std::string& name,
      const std::vector<std::string>& flags, const Cores& cores = {},
      const std::optional<FarEnd>& end = {});
  absl::StatusOr<std::string> ConnectTunnels(const RoundTrips& nominal);
  absl::StatusOr<double> Calibrate(const FarEnd& end, double nominal_ms);
  LinkOptions Link(double rtt_ms) const;
  absl::StatusOr<double> Calibrate(double nominal_ms);

  const LinkOptions network_;
  Cancellation& cancellation_;
  RoundTrips achieved_;
  std::string verifier_;
  std::string drafter_;
  std::string direct_coordinator_;
  std::string coordinator_;
  // Set where tunnels make the network. They outlive the programs in them.
  std::optional<FarEnd> verifier_end_;
  std::optional<FarEnd> drafter_end_;
  std::vector<std::unique_ptr<ChildProcess>> programs_;
  // Set where proxies make the network.
  std::unique_ptr<EchoServer> echo_;
  std::unique_ptr<DelayProxy> verifier_proxy_;
  std::unique_ptr<DelayProxy> drafter_proxy_;
  std::unique_ptr<DelayProxy> echo_proxy_;
};

// What the models do inside their own processes: `--measure`, while the others
// idle. Ends early, with CANCELLED, as the others do.
struct InsideTimes {
  double plain_token_ms = 0;          // plain decoding in the verifier, greedy
  double plain_sampled_token_ms = 0;  // at temperature 1
  std::vector<double> rows_ms = {};   // T(1), T(2), ...
};
absl::StatusOr<InsideTimes> MeasureVerifier(const TrioOptions& options,
                                            Cancellation& cancellation);
// One token by the drafter: its greatest, or drawn at temperature 1.
absl::StatusOr<double> MeasureDraftStepMs(const TrioOptions& options,
                                          bool is_sampled,
                                          Cancellation& cancellation);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_TRIO_H_
