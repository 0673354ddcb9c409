// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "bench/command/bench_options.h"
#include "core/base/flag_checks.h"
#include "core/sampling/draft_flags.h"
#include "core/sampling/rule_names.h"
#include "core/sampling/sampling_params.h"
#include "core/wire/reply_format_names.h"

namespace outrider::bench {
namespace {

constexpr char kFooter[] =
    R"(Without --coordinator it starts a verifier, a drafter and a coordinator itself,
from the folder of this program, on loopback, and plays the network between them
with TCP proxies (--network tunnel, as root: with IP packets). With
--coordinator it measures a deployment that runs; the network is that
deployment's own.

Each point is compared with plain decoding inside the verifier (its own process,
no network, measured in the same run) and with K = 0 through the same network.
DIR gets results.jsonl (a line a point), results.csv, report.md, report.html.

Exit status: 0 done, 1 requests failed, a point could not be measured, a program
ended or --fail-under was missed, 2 bad flags, 130 interrupted: what was
measured is kept.

Examples:
  outrider bench run --rtt 5 -k 4
  outrider bench run --coordinator 127.0.0.1:7000 -k 4 --prompts mine.jsonl
  outrider bench sweep --repeat 3 --out results --dry-run
  outrider bench sweep --simulate --simulate-verify-ms 25 \
    --simulate-row-ms 0.25 --simulate-draft-ms 3 --simulate-acceptance 0.8)";

// An option of one number in the range.
template <typename Number>
CLI::Option* AddNumber(CLI::App& command, const char* name, Number& value,
                       const char* unit, const NumberRange& range,
                       const char* help) {
  return command.add_option(name, value, help)
      ->type_name(unit)
      ->check(NumberIn(range));
}

void AddGridFlags(CLI::App& command, bool is_sweep, BenchFlags& flags) {
  flags.ks = is_sweep ? "0,1,2,4,8" : "4";
  flags.concurrencies = is_sweep ? "1,8" : "1";
  const char* const list = is_sweep ? "LIST" : "N";
  command
      .add_option(
          "--rtt", flags.rtts,
          "round-trip time from coordinator to each node, ms; 0, which\n"
          "adds nothing, with --coordinator")
      ->type_name(list)
      ->default_str(is_sweep ? kSweptRtts : "0");
  command
      .add_option("-k,--k", flags.ks,
                  "draft tokens a round; auto: chosen by the coordinator for\n"
                  "each round; 0 is measured in any case")
      ->type_name(list)
      ->capture_default_str();
  command
      .add_option("--schedule", flags.schedules,
                  "when the drafter works: sequential, ahead, predraft, auto")
      ->type_name(is_sweep ? "LIST" : "SCHEDULE")
      ->capture_default_str();
  command
      .add_option("--concurrency", flags.concurrencies,
                  "users, who each wait for their answer (closed loop)")
      ->type_name(list)
      ->capture_default_str();
  command
      .add_option("--rate", flags.rates,
                  "in place of users: requests a second at random times\n"
                  "(open loop, Poisson)")
      ->type_name(list)
      ->excludes("--concurrency");
  command.add_option("--repeat", flags.num_repeats, "times each cell")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumberIn(1, 1000));
}

void AddDeploymentFlags(CLI::App& command, BenchFlags& flags) {
  auto* const coordinator =
      command
          .add_option("--coordinator", flags.coordinator,
                      "HOST:PORT or unix:PATH: measure what runs there, in\n"
                      "place of starting it")
          ->type_name("ADDRESS");
  command.add_flag("--insecure", flags.insecure,
                   "allow plain text off this machine");
  const auto add_file = [&](const char* name, std::string& file,
                            const char* help) {
    command.add_option(name, file, help)->type_name("FILE")->needs(coordinator);
  };
  add_file("--tls-ca", flags.tls.authority,
           "connect by TLS, and trust what this PEM file signed");
  add_file("--tls-cert", flags.tls.certificate,
           "our certificate, where the coordinator wants one");
  add_file("--tls-key", flags.tls.key, "the key of --tls-cert");
  auto* const target = command
                           .add_option("--target-model", flags.target_model,
                                       "default: the demo pair's")
                           ->type_name("DIR")
                           ->excludes(coordinator);
  auto* const draft = command
                          .add_option("--draft-model", flags.draft_model,
                                      "default: the demo pair's")
                          ->type_name("DIR")
                          ->excludes(coordinator);
  command.add_option("--dtype", flags.dtype, "float32, bfloat16 or auto")
      ->excludes(coordinator)
      ->check(OneOf({"auto", "float32", "bfloat16"}))
      ->capture_default_str();
  command
      .add_option("--threads", flags.num_threads,
                  "of a node's pass; 0: the cores that it may use")
      ->excludes(coordinator)
      ->check(WholeNumberIn(0, 1024))
      ->capture_default_str();
  command
      .add_flag("--bind-cores", flags.binds_cores,
                "keep each node on as many cores as its --threads, which this "
                "needs, and all else on what is left, or on the drafter's")
      ->excludes(coordinator);
  auto* const simulate =
      command
          .add_flag("--simulate", flags.simulate,
                    "nodes with timing models in place of weights")
          ->excludes(coordinator)
          ->excludes(target)
          ->excludes(draft);
  Simulation& simulation = flags.simulation;
  const auto add_time = [&](const char* name, double& value, const char* help) {
    AddNumber(command, name, value, "MS", {.low = 0, .high = 1e5}, help)
        ->needs(simulate);
  };
  add_time("--simulate-draft-ms", simulation.draft_ms,
           "time of a drafter's pass");
  add_time("--simulate-draft-row-ms", simulation.draft_row_ms,
           "time that each token of the pass adds");
  add_time("--simulate-verify-ms", simulation.verify_ms,
           "time of a verifier's pass");
  add_time("--simulate-row-ms", simulation.verify_row_ms,
           "time that each token of the pass adds");
  auto* const acceptance =
      AddNumber(command, "--simulate-acceptance", simulation.acceptance, "P",
                {.low = 0, .high = 1},
                "probability that a draft token is accepted")
          ->needs(simulate);
  AddNumber(command, "--simulate-outcome-hit", simulation.outcome_hit, "P",
            {.low = 0, .high = 1},
            "share of refused draft tokens whose replacement the "
            "drafter ranks next")
      ->needs(simulate);
  AddNumber(command, "--simulate-tokens-per-round",
            flags.simulated_tokens_per_round, "N", {.low = 1, .high = 1025},
            "fit the acceptance to this many at the "
            "largest K")
      ->needs(simulate)
      ->excludes(acceptance);
}

void AddNetworkFlags(CLI::App& command, BenchFlags& flags) {
  command
      .add_option("--network", flags.network,
                  "proxy: TCP relays, which delay what is sent; tunnel: IP\n"
                  "packets between network namespaces, which also stretches\n"
                  "handshakes and windows, and needs root")
      ->check(OneOf({"proxy", "tunnel"}))
      ->capture_default_str();
  constexpr NumberRange kMs = {.low = 0, .high = 1e4};
  AddNumber(command, "--drafter-rtt", flags.drafter_rtt_ms, "MS", kMs,
            "round trip to the drafter; default: --rtt");
  AddNumber(command, "--jitter", flags.jitter_ms, "MS", kMs,
            "each way's delay varies by up to this");
  AddNumber(command, "--bandwidth", flags.bandwidth_mbit, "MBIT/S",
            {.low = 0.001, .high = 1e6},
            "of each link, each way; default: no limit");
  constexpr NumberRange kBytes = {.low = 1, .high = 1e15};
  AddNumber(command, "--mean-bytes-to-drop", flags.mean_bytes_to_drop, "BYTES",
            kBytes, "close connections after about this much");
  AddNumber(command, "--mean-bytes-to-reset", flags.mean_bytes_to_reset,
            "BYTES", kBytes, "reset connections after about this much");
  command
      .add_option("--network-seed", flags.network_seed,
                  "of jitter, drops and resets")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumberIn(0, UINT64_MAX));
}

void AddRequestFlags(CLI::App& command, BenchFlags& flags) {
  command
      .add_option("--prompts", flags.prompts,
                  "JSONL, {\"prompt\": ...} a line; default: the demo's\n"
                  "held-out ones, made-up ones with --simulate")
      ->type_name("FILE");
  command
      .add_option("--acceptance-rule", flags.rule,
                  "greedy (temperature 0); rejection, block or coupled\n"
                  "(sampling)")
      ->check(OneOf(RuleFlagNames()))
      ->capture_default_str();
  AddNumber(command, "--temperature", flags.temperature, "T", kTemperatures,
            "with another --acceptance-rule than greedy")
      ->capture_default_str();
  AddMinDraftProbabilityFlag(command, flags.drafting.min_draft_probability);
  AddNumber(command, "--lossy-lenience", flags.lossy_lenience, "L",
            kLossyLeniences,
            "below 1 more drafts are accepted, and the text is not\n"
            "the target's any more; needs --acceptance-rule rejection")
      ->capture_default_str();
  command.add_flag("--prompt-lookup", flags.prompt_lookup,
                   "draft from the text so far where it repeats itself");
  AddNamedOption(command, "--reply-format", flags.reply_format,
                 ReplyFormatNames(),
                 "what the verifier sends back: full, full-bfloat16, sparse\n"
                 "or tokens; default: the coordinator's")
      ->type_name("FORMAT");
  command
      .add_option("--max-tokens", flags.max_tokens,
                  "of each request; all are this long")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumberIn(2, 1 << 20));
  AddNumber(command, "--seconds", flags.seconds, "S",
            {.low = 0.01, .high = 1e6},
            "begin requests this long at each point")
      ->capture_default_str();
  command
      .add_option("--warm-up", flags.num_warm_up,
                  "requests before each point, which do not count")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumberIn(0, 1000));
  command.add_option("--seed", flags.seed, "of requests and arrivals")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumberIn(0, UINT64_MAX));
  AddNumber(command, "--timeout", flags.timeout_seconds, "S",
            {.low = 0.001, .high = 1e6},
            "a request that takes longer has failed")
      ->capture_default_str();
}

}  // namespace

void AddBenchFlags(CLI::App& command, bool is_sweep, BenchFlags& flags) {
  AddGridFlags(command, is_sweep, flags);
  AddDeploymentFlags(command, flags);
  AddNetworkFlags(command, flags);
  AddRequestFlags(command, flags);
  command.add_option("--out", flags.out, "folder of the results")
      ->type_name("DIR")
      ->capture_default_str();
  command.add_flag("--resume", flags.resume,
                   "go on with the results that DIR has");
  command.add_flag("--dry-run", flags.dry_run,
                   "say what would be measured, and how long it takes");
  AddNumber(command, "--fail-under", flags.fail_under, "RATIO",
            {.low = 0, .high = 1e6},
            "exit with 1 where the speed-up over plain decoding in the\n"
            "verifier is less in the best cell with K above 0");
  command.footer(kFooter);
}

}  // namespace outrider::bench
