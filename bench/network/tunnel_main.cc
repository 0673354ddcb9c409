// SPDX-License-Identifier: Apache-2.0
// outrider-tunnel: runs a program behind a network with a true round-trip time.
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "bench/network/launch.h"
#include "bench/network/network_namespace.h"
#include "bench/network/tunnel.h"
#include "core/base/build_version.h"
#include "core/base/flag_checks.h"
#include "core/base/parse_flags.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

struct Flags {
  double round_trip_ms = 0;
  double jitter_ms = 0;
  double megabits_per_second = 0;
  TunnelOptions tunnel = {};
  std::vector<std::string> command = {};
};

constexpr char kFooter[] =
    R"(The program runs in a network of its own, which {host} in its arguments
stands for, and is reached from here at that address. Needs root. The round trip
is measured before the program starts, without the limit of --bandwidth, and
refused if it is off by more than 5 % + 0.3 ms and twice the jitter. The program
has no terminal to ask at. Ctrl-C and SIGTERM go to it, and its exit status is
ours. Nothing is left behind, however it ends.

Example: a verifier 20 ms away, at 198.18.1.2:7002:
  outrider-tunnel --rtt 20 -- outrider-verifier --model models/demo-target \
      --listen {host}:7002 --insecure
  outrider-coordinator --verifier 198.18.1.2:7002 --insecure ...)";

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--rtt", flags.round_trip_ms, "round-trip time")
      ->type_name("MS")
      ->check(NumberIn(0, 10000))
      ->required();
  app.add_option("--jitter", flags.jitter_ms,
                 "each packet's one-way delay, more or less up to this")
      ->type_name("MS")
      ->check(NumberIn(0, 10000));
  app.add_option("--bandwidth", flags.megabits_per_second,
                 "each way; 0: no limit")
      ->type_name("MBIT/S")
      ->check(NumberIn(0, 1e6));
  app.add_option("--loss", flags.tunnel.loss, "each packet's chance to be lost")
      ->check(NumberIn(0, 0.99));
  app.add_option("--seed", flags.tunnel.link.seed, "of jitter and loss")
      ->capture_default_str();
  app.add_option("--network", flags.tunnel.network,
                 "N in its addresses 198.18.N.1 (here) and .2 (the program): "
                 "another for each tunnel of a machine")
      ->check(WholeNumberIn(0, 255))
      ->capture_default_str();
  app.add_option("command", flags.command, "the program and its arguments")
      ->required();
  app.positionals_at_end();
  app.footer(kFooter);
}

// Runs it in `space` until it ends; its exit status.
absl::StatusOr<int> RunCommand(const NetworkNamespace& space,
                               const std::vector<std::string>& command,
                               const sigset_t& signals) {
  pid_t pid = -1;
  {
    OUTRIDER_ASSIGN_OR_RETURN(const ScopedNamespace entered,
                              ScopedNamespace::Enter(space));
    OUTRIDER_ASSIGN_OR_RETURN(pid, Launch(command));
  }
  while (true) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGCHLD) {
      kill(pid, signal);
      continue;
    }
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

absl::StatusOr<int> Run(const Flags& flags, const sigset_t& signals) {
  TunnelOptions options = flags.tunnel;
  const auto nanoseconds = [](double ms) {
    return std::chrono::nanoseconds(static_cast<int64_t>(1e6 * ms));
  };
  options.link.delay = nanoseconds(flags.round_trip_ms / 2);
  options.link.jitter = nanoseconds(flags.jitter_ms);
  options.link.bytes_per_second = flags.megabits_per_second * 1e6 / 8;
  OUTRIDER_ASSIGN_OR_RETURN(const NetworkNamespace space,
                            NetworkNamespace::Create());
  const LinkOptions link = options.link;
  options.link = DelayAlone(link);
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<Tunnel> tunnel,
                            Tunnel::Start(space, options));
  // A lossy echo measures retransmissions: no figure to hold anyone to.
  if (options.loss == 0) {
    OUTRIDER_ASSIGN_OR_RETURN(const std::chrono::nanoseconds achieved,
                              Calibrate(*tunnel, space, link));
    std::cerr << absl::StrFormat(
        "outrider-tunnel: %s is %.2f ms away (asked for: %g ms)\n",
        tunnel->far_host(),
        std::chrono::duration<double, std::milli>(achieved).count(),
        flags.round_trip_ms);
  }
  OUTRIDER_RETURN_IF_ERROR(tunnel->SetLink(link));
  std::vector<std::string> command;
  for (const std::string& word : flags.command) {
    command.push_back(
        absl::StrReplaceAll(word, {{"{host}", tunnel->far_host()}}));
  }
  return RunCommand(space, command, signals);
}

}  // namespace
}  // namespace outrider::bench

int main(int argc, char** argv) {
  CLI::App app("Runs a program behind a network with a true round-trip time.",
               "outrider-tunnel");
  app.set_version_flag(
      "--version", absl::StrCat("outrider-tunnel ", outrider::kBuildVersion));
  outrider::bench::Flags flags;
  outrider::bench::AddFlags(app, flags);
  if (const auto exit_status = outrider::ParseFlags(app, argc, argv)) {
    return *exit_status;
  }
  // No thread exists yet: one that did not block them would take them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) {
    sigaddset(&signals, signal);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const absl::StatusOr<int> exit_status = outrider::bench::Run(flags, signals);
  if (!exit_status.ok()) {
    std::cerr << "outrider-tunnel: " << exit_status.status().message() << "\n";
    return 1;
  }
  return *exit_status;
}
