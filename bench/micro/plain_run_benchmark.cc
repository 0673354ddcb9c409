// SPDX-License-Identifier: Apache-2.0
// What a token of plain decoding takes where the verifier draws some in a call
// (RunLength), beside a call for each, by turns in one run. The coordinator's
// own decoder asks; the verifier is a process of its own, on loopback or behind
// a relay that plays a network. A pass of the verifier reads so many MiB, as it
// would its weights.
//   build/release/bin/plain_run_benchmark [--seconds S] [--weights-mib M]
//   [--rtt MS]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <memory>
#include <string>

#include "bench/micro/figures.h"
#include "bench/micro/round_client.h"
#include "bench/micro/server_process.h"
#include "bench/micro/simulated_nodes.h"
#include "bench/network/delay_proxy.h"
#include "core/base/check.h"
#include "core/base/flag_checks.h"
#include "core/base/freed_memory.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

// So many rounds go one way before as many go the other.
constexpr int kTurn = 40;

// It measures always, and makes runs where it is told to.
class SwitchedRunLength final : public RunLength {
 public:
  int Next() const override { return makes_runs_ ? measured_.Next() : 1; }
  void Learn(const Call& call) override { measured_.Learn(call); }
  void set_makes_runs(bool makes_runs) { makes_runs_ = makes_runs; }

 private:
  // What the simulated verifier takes.
  MeasuredRunLength measured_{1 + kSimulatedDrafts};
  bool makes_runs_ = false;
};

struct Times {
  Figures alone = {};
  Figures in_runs = {};
};

// Each token takes a round. The first rounds of a turn are not counted.
Task<void> Turn(RoundClient& client, Figures& figures) {
  for (int i = -kTurn / 10; i < kTurn; ++i) {
    const int before = client.session().length();
    const Clock::time_point begin = Clock::now();
    co_await client.Round();
    const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
    const int num_tokens = client.session().length() - before;
    if (i >= 0) figures.us.push_back(time.count() / num_tokens);
  }
}

Task<void> Measure(RoundClient& client, SwitchedRunLength& run,
                   Clock::time_point end, Times& times,
                   std::promise<void>& done) {
  do {
    run.set_makes_runs(false);
    co_await Turn(client, times.alone);
    run.set_makes_runs(true);
    co_await Turn(client, times.in_runs);
  } while (Clock::now() < end);
  done.set_value();
}

void Run(std::chrono::seconds period, int weights_mib, int rtt_ms) {
  Listeners listeners;
  const ServerProcess verifier(
      [&](const auto& listen) {
        return ServeSimulatedVerifier(listen, PassThatReads(weights_mib));
      },
      listeners.Next());
  SetUpGrpc();
  std::unique_ptr<bench::DelayProxy> proxy;
  std::string address = verifier.address();
  if (rtt_ms > 0) {
    auto started = bench::DelayProxy::Start(
        {.target = address,
         .link = {.delay = std::chrono::microseconds(500 * rtt_ms)}});
    OUTRIDER_CHECK(started.ok()) << started.status();
    proxy = *std::move(started);
    address = proxy->address();
  }
  CallQueue queue(/*num_threads=*/1);
  SwitchedRunLength run;
  RoundClient client({.drafter = address, .verifier = address}, /*k=*/0, queue,
                     &run);
  Times times;
  std::promise<void> done;
  StartDetached(Measure(client, run, Clock::now() + period, times, done));
  done.get_future().get();

  std::printf("%-52s %8s %8s\n", "us a token", "p50", "p99");
  Print("a call for each", times.alone);
  Print("in runs of " + std::to_string(run.Next()), times.in_runs);
  std::printf(
      "\nIn medians a token in a run takes %.3f of the time of one with a call "
      "of its own\n(passes that read %d MiB, a round trip of %d ms).\n",
      times.in_runs.p50() / times.alone.p50(), weights_mib, rtt_ms);
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) try {
  CLI::App app("What it is worth that a verifier draws several plain tokens.");
  int seconds = 20;
  app.add_option("--seconds", seconds, "how long to measure")
      ->check(outrider::WholeNumberIn(1, 3600))
      ->capture_default_str();
  int weights_mib = 16;
  app.add_option("--weights-mib", weights_mib, "what a pass reads")
      ->check(outrider::WholeNumberIn(0, 4096))
      ->capture_default_str();
  int rtt_ms = 0;
  app.add_option("--rtt", rtt_ms, "round trip to the verifier, ms")
      ->check(outrider::WholeNumberIn(0, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  // As nodes do, and those here are forked from this process. A coordinator's
  // program only bounds its heaps.
  outrider::KeepFreedMemory();
  outrider::Run(std::chrono::seconds(seconds), weights_mib, rtt_ms);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
