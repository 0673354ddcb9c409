// SPDX-License-Identifier: Apache-2.0
// What a round costs beside its models: rounds of the production code with
// nodes that take no time, K = 4 and K = 0, one user, and beside them in the
// same run bare echoes of the bytes of the same calls, by gRPC's fastest ways
// to serve one: the callback API, and a completion queue that one thread polls.
// Drafter, verifier and echoes are processes of their own, on loopback or at
// socket files. Rounds and echoes take turns, so that the machine's moods meet
// all of them. Run by hand:
//   build/release/bin/round_overhead_benchmark [--seconds S] [--sockets DIR]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/micro/figures.h"
#include "bench/micro/grpc_echo.h"
#include "bench/micro/round_client.h"
#include "bench/micro/server_process.h"
#include "bench/micro/simulated_nodes.h"
#include "core/base/check.h"
#include "core/base/flag_checks.h"
#include "core/base/freed_memory.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/server.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

// So many rounds of one kind run before the next has its turn.
constexpr int kTurn = 100;

// Awaits one kind, a turn of them, and notes what each took once the first ones
// have woken whoever slept. The end is noted where it ends, on the queue's
// thread, as waking the thread that waits for all is no part of it.
void Time(const std::function<Task<void>()>& act, Figures& figures) {
  std::promise<void> done;
  const auto run = [](const std::function<Task<void>()>& once,
                      std::vector<double>& us,
                      std::promise<void>& end) -> Task<void> {
    for (int i = -kTurn / 4; i < kTurn; ++i) {
      const Clock::time_point begin = Clock::now();
      co_await once();
      const std::chrono::duration<double, std::micro> time =
          Clock::now() - begin;
      if (i >= 0) us.push_back(time.count());
    }
    end.set_value();
  };
  StartDetached(run(act, figures.us, done));
  done.get_future().get();
}

// Rounds that are nothing but their calls, echoed by two processes.
class EchoRounds {
 public:
  EchoRounds(const Serve& serve, const char* way, Listeners& listeners)
      : way_(way),
        drafter_process_(serve, listeners.Next()),
        verifier_process_(serve, listeners.Next()) {}

  void Connect(CallQueue& queue) {
    drafter_.emplace(drafter_process_.address(), queue);
    verifier_.emplace(verifier_process_.address(), queue);
  }
  // The queue may end now.
  void Disconnect() {
    drafter_.reset();
    verifier_.reset();
  }

  void Measure(const CallBytes& draft, const CallBytes& verify,
               const CallBytes& plain) {
    Time([&] { return drafter_->Call(draft); }, draft_);
    Time([&] { return verifier_->Call(verify); }, verify_);
    Time([&] { return verifier_->Call(plain); }, plain_);
    Time([&] { return Both(draft, verify); }, both_);
  }

  void PrintAll() const {
    Print(absl::StrCat("echoes of a Draft, by ", way_), draft_);
    Print(absl::StrCat("echoes of a Verify, K = 4, by ", way_), verify_);
    Print(absl::StrCat("both, one after the other, by ", way_), both_);
    Print(absl::StrCat("echoes of a Verify, K = 0, by ", way_), plain_);
  }

  double each() const { return draft_.p50() + verify_.p50(); }
  double both() const { return both_.p50(); }
  double plain() const { return plain_.p50(); }

 private:
  Task<void> Both(CallBytes draft, CallBytes verify) {
    co_await drafter_->Call(draft);
    co_await verifier_->Call(verify);
  }

  const char* const way_;
  ServerProcess drafter_process_;
  ServerProcess verifier_process_;
  std::optional<EchoClient> drafter_;
  std::optional<EchoClient> verifier_;
  Figures draft_, verify_, plain_, both_;
};

struct RoundFigures {
  Figures speculative;
  Figures plain;
};

// Rounds and echoes in turns for so long, on a queue of their own.
void Measure(CallQueue::Spin spin, std::chrono::seconds period,
             const RoundClient::Addresses& addresses,
             const std::vector<EchoRounds*>& all_echoes,
             RoundFigures& figures) {
  const Clock::time_point end = Clock::now() + period;
  CallQueue queue(/*num_threads=*/1, spin);
  // A coordinator serves, too, by the same queue.
  const auto coordinator =
      RpcServer::Start({.listen = "127.0.0.1:0"}, {}, queue);
  OUTRIDER_CHECK(coordinator.ok()) << coordinator.status();
  RoundClient speculative(addresses, kSimulatedDrafts, queue);
  RoundClient plain(addresses, 0, queue);
  for (EchoRounds* echoes : all_echoes) echoes->Connect(queue);
  do {
    Time([&] { return speculative.Round(); }, figures.speculative);
    Time([&] { return plain.Round(); }, figures.plain);
    for (EchoRounds* echoes : all_echoes) {
      echoes->Measure(speculative.drafter_bytes(), speculative.verifier_bytes(),
                      plain.verifier_bytes());
    }
  } while (Clock::now() < end);
  for (EchoRounds* echoes : all_echoes) echoes->Disconnect();
}

void Run(std::chrono::seconds period, CallQueue::Spin spin,
         Listeners listeners) {
  const ServerProcess drafter(ServeSimulatedDrafter, listeners.Next());
  const ServerProcess verifier(
      [](const auto& listen) { return ServeSimulatedVerifier(listen); },
      listeners.Next());
  EchoRounds callback_echoes(ServeCallbackEcho, "the callback API", listeners);
  EchoRounds queue_echoes(ServeQueueEcho, "a queue", listeners);
  SetUpGrpc();
  const RoundClient::Addresses addresses = {.drafter = drafter.address(),
                                            .verifier = verifier.address()};
  RoundFigures rounds;
  RoundFigures spinning;
  if (spin == CallQueue::Spin(0)) {
    Measure(spin, period, addresses, {&callback_echoes, &queue_echoes}, rounds);
  } else {
    const Clock::time_point end = Clock::now() + period;
    constexpr std::chrono::seconds kPhase(1);
    do {
      Measure(CallQueue::Spin(0), kPhase, addresses,
              {&callback_echoes, &queue_echoes}, rounds);
      Measure(spin, kPhase, addresses, {}, spinning);
    } while (Clock::now() < end);
  }

  std::printf("%-52s %8s %8s\n", "us", "p50", "p99");
  Print(absl::StrCat("rounds, K = ", kSimulatedDrafts), rounds.speculative);
  Print("rounds, K = 0", rounds.plain);
  for (const EchoRounds* echoes : {&callback_echoes, &queue_echoes}) {
    echoes->PrintAll();
  }
  const auto fastest = [&](double (EchoRounds::*p50)() const) {
    return std::min((callback_echoes.*p50)(), (queue_echoes.*p50)());
  };
  std::printf(
      "\nIn medians a round with K = %d takes %.2f times the fastest echoes of "
      "its two calls,\none after the other as in a round (%.2f times those "
      "that were repeated by themselves);\nwith K = 0 %.2f times that of its "
      "one.\n",
      kSimulatedDrafts, rounds.speculative.p50() / fastest(&EchoRounds::both),
      rounds.speculative.p50() / fastest(&EchoRounds::each),
      rounds.plain.p50() / fastest(&EchoRounds::plain));
  if (spin == CallQueue::Spin(0)) return;
  std::printf("\n");
  Print(absl::StrCat("rounds, K = ", kSimulatedDrafts, ", spin"),
        spinning.speculative);
  Print("rounds, K = 0, spin", spinning.plain);
  std::printf(
      "\nWhere the coordinator spins for %d us rounds with K = %d take %.2f "
      "times as long,\nwith K = 0 %.2f times.\n",
      static_cast<int>(spin.count()), kSimulatedDrafts,
      spinning.speculative.p50() / rounds.speculative.p50(),
      spinning.plain.p50() / rounds.plain.p50());
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  CLI::App app("What a round costs beside its models.");
  int seconds = 20;
  app.add_option("--seconds", seconds, "how long to measure")
      ->check(outrider::WholeNumberIn(1, 3600))
      ->capture_default_str();
  int spin_us = 0;
  app.add_option("--spin-us", spin_us,
                 "beside a coordinator that sleeps at once, one that spins for "
                 "so long, in turns")
      ->check(
          outrider::WholeNumberIn(0, outrider::CallQueue::kLongestSpin.count()))
      ->capture_default_str();
  std::string sockets;
  app.add_option("--sockets", sockets,
                 "an empty folder: by socket files in it, not over loopback")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  // As nodes do, and those here are forked from this process. A coordinator's
  // program only bounds its heaps.
  outrider::KeepFreedMemory();
  outrider::Run(std::chrono::seconds(seconds),
                outrider::CallQueue::Spin(spin_us),
                outrider::Listeners(sockets));
  return 0;
}
