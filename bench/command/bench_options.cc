// SPDX-License-Identifier: Apache-2.0
#include "bench/command/bench_options.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/command/file_hash.h"
#include "bench/load/formula.h"
#include "client/command.h"
#include "core/base/status_macros.h"
#include "core/sampling/rule_names.h"
#include "core/wire/reply_codec.h"
#include "core/wire/reply_format_names.h"

namespace outrider::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxRttMs = 10000;
constexpr int kMaxK = 1024;
constexpr int kMaxConcurrency = 4096;
constexpr int kNumSimulatedPrompts = 4096;
constexpr int kSimulatedPromptLength = 16;

absl::Status CheckTogether(const BenchFlags& flags) {
  if (flags.coordinator) {
    OUTRIDER_RETURN_IF_ERROR(
        client::CheckCoordinatorFlags({.coordinator = *flags.coordinator,
                                       .insecure = flags.insecure,
                                       .tls = flags.tls}));
    const bool has_network = flags.network != "proxy" || flags.drafter_rtt_ms ||
                             flags.jitter_ms > 0 || flags.bandwidth_mbit > 0 ||
                             flags.mean_bytes_to_drop > 0 ||
                             flags.mean_bytes_to_reset > 0;
    if (has_network) {
      return absl::InvalidArgumentError(
          "--coordinator measures a deployment over its own network: leave out "
          "--network, --drafter-rtt, --jitter, --bandwidth and the bytes to a "
          "drop or reset");
    }
  }
  if (flags.network == "tunnel" &&
      (flags.mean_bytes_to_drop > 0 || flags.mean_bytes_to_reset > 0)) {
    return absl::InvalidArgumentError(
        "--network tunnel knows packets, not connections: leave out the bytes "
        "to a drop or reset, or use --network proxy");
  }
  const std::optional<RuleKind> rule = RuleOfName(flags.rule);
  if (rule == RuleKind::kCoupled && flags.reply_format.has_value() &&
      !CodecOf(*flags.reply_format).CheckRule(RuleKind::kCoupled).ok()) {
    return absl::InvalidArgumentError(
        "--acceptance-rule coupled needs --reply-format tokens or full, not "
        "sparse");
  }
  if (flags.lossy_lenience < 1 &&
      (flags.rule == kGreedyRuleName || rule != RuleKind::kRejection)) {
    return absl::InvalidArgumentError(
        "--lossy-lenience needs --acceptance-rule rejection");
  }
  if (flags.simulate && flags.simulation.verify_ms <= 0) {
    return absl::InvalidArgumentError(
        "--simulate needs --simulate-verify-ms, the time of the verifier's "
        "pass");
  }
  return absl::OkStatus();
}

// Plain decoding has no speed-up to hold anyone to, and a running verifier says
// what it takes only where one user has it.
absl::Status CheckHasSpeedup(const BenchFlags& flags, const Grid& grid) {
  const bool has_one_user = std::find(grid.loads.begin(), grid.loads.end(),
                                      Load{}) != grid.loads.end();
  if (flags.fail_under && !grid.HasDrafts()) {
    return absl::InvalidArgumentError(
        "--fail-under is of cells that draft: name a K above 0");
  }
  if (!flags.coordinator || !flags.fail_under || has_one_user) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--fail-under is over plain decoding in the verifier, which with "
      "--coordinator is measured by one user: add 1 to --concurrency");
}

absl::StatusOr<Grid> ToGrid(const BenchFlags& flags, bool is_sweep) {
  Grid grid = {.num_repeats = flags.num_repeats};
  const bool adds_round_trips = is_sweep && !flags.coordinator;
  OUTRIDER_ASSIGN_OR_RETURN(
      grid.rtts_ms,
      ParseNumbers("--rtt",
                   flags.rtts.value_or(adds_round_trips ? kSweptRtts : "0"), 0,
                   kMaxRttMs));
  OUTRIDER_ASSIGN_OR_RETURN(grid.ks, ParseDraftLengths("--k", flags.ks, kMaxK));
  OUTRIDER_ASSIGN_OR_RETURN(grid.schedules,
                            ParseSchedules("--schedule", flags.schedules));
  grid.loads.clear();
  if (flags.rates) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const std::vector<double> rates,
        ParseNumbers("--rate", *flags.rates, 0.01, 10000));
    for (const double rate : rates) {
      grid.loads.push_back({.concurrency = 0, .rate = rate});
    }
  } else {
    OUTRIDER_ASSIGN_OR_RETURN(
        const std::vector<int> users,
        ParseWholeNumbers("--concurrency", flags.concurrencies, 1,
                          kMaxConcurrency));
    for (const int concurrency : users) {
      grid.loads.push_back({.concurrency = concurrency});
    }
  }
  if (!is_sweep && (grid.rtts_ms.size() > 1 || grid.ks.size() > 1 ||
                    grid.schedules.size() > 1 || grid.loads.size() > 1)) {
    return absl::InvalidArgumentError(
        "run measures one point; for lists there is outrider bench sweep");
  }
  return grid;
}

// Finds models/NAME, in the folder of the programs or one above it.
absl::StatusOr<std::string> FindModels(const std::string& programs,
                                       const std::string& name) {
  for (fs::path folder = programs; !folder.empty();
       folder = folder.parent_path()) {
    std::error_code error;
    const fs::path found = folder / "models" / name;
    if (fs::exists(found, error)) return found.string();
    if (folder == folder.parent_path()) break;
  }
  return absl::NotFoundError(
      absl::StrCat("models/", name,
                   " is not above this program: pass --target-model, "
                   "--draft-model and --prompts"));
}

std::string BaseName(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return (clean.has_filename() ? clean : clean.parent_path())
      .filename()
      .string();
}

absl::StatusOr<std::string> PromptsPath(const BenchFlags& flags,
                                        const std::string& programs) {
  if (flags.prompts) return *flags.prompts;
  return FindModels(programs, "bench_prompts.jsonl");
}

absl::StatusOr<TrioOptions> ToTrio(const BenchFlags& flags, const Grid& grid,
                                   const std::string& programs) {
  const int max_k = grid.LargestK();
  TrioOptions trio = {.programs = programs,
                      .dtype = flags.dtype,
                      .num_threads = flags.num_threads,
                      .max_draft_tokens = std::max(16, max_k),
                      .uses_tunnels = flags.network == "tunnel"};
  if (flags.binds_cores) {
    OUTRIDER_ASSIGN_OR_RETURN(const Cores cores, CoresOfThisThread());
    OUTRIDER_ASSIGN_OR_RETURN(trio.placement,
                              PlaceOnCores(cores, flags.num_threads));
  }
  if (flags.simulate) {
    trio.simulation = flags.simulation;
    if (const auto tokens = flags.simulated_tokens_per_round) {
      if (max_k == 0 || *tokens > max_k + 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--simulate-tokens-per-round ", *tokens,
            max_k == 0 ? " is of the largest K, and --k names none above 0"
                       : " is more than a round of K + 1 can have: pass a "
                         "larger --k"));
      }
      trio.simulation->acceptance = FitAcceptance(*tokens, max_k);
    }
    return trio;
  }
  if (flags.target_model.has_value() != flags.draft_model.has_value()) {
    return absl::InvalidArgumentError(
        "--target-model and --draft-model go together: they share a tokenizer");
  }
  if (flags.target_model) {
    trio.target_model = *flags.target_model;
    trio.draft_model = *flags.draft_model;
    return trio;
  }
  OUTRIDER_ASSIGN_OR_RETURN(trio.target_model,
                            FindModels(programs, "demo-target"));
  OUTRIDER_ASSIGN_OR_RETURN(trio.draft_model,
                            FindModels(programs, "demo-draft"));
  return trio;
}

absl::StatusOr<LinkOptions> ToNetwork(const BenchFlags& flags,
                                      const Grid& grid) {
  const auto nanoseconds = [](double ms) {
    return std::chrono::nanoseconds(static_cast<int64_t>(1e6 * ms));
  };
  LinkOptions network = {.jitter = nanoseconds(flags.jitter_ms),
                         .bytes_per_second = 1e6 / 8 * flags.bandwidth_mbit,
                         .mean_bytes_to_drop = flags.mean_bytes_to_drop,
                         .mean_bytes_to_reset = flags.mean_bytes_to_reset,
                         .seed = flags.network_seed};
  double lowest_ms =
      *std::min_element(grid.rtts_ms.begin(), grid.rtts_ms.end());
  lowest_ms = std::min(lowest_ms, flags.drafter_rtt_ms.value_or(lowest_ms));
  if (2 * flags.jitter_ms > lowest_ms) {
    return absl::InvalidArgumentError(
        absl::StrCat("--jitter ", flags.jitter_ms,
                     " is more than one way of the lowest round trip, ",
                     lowest_ms, " ms: nothing arrives before it was sent"));
  }
  return network;
}

void AddModels(const BenchOptions& options, Configuration& configuration) {
  auto& binding = configuration.binding;
  if (options.flags.coordinator) {
    binding.emplace_back(
        "deployment", absl::StrCat("running, at ", *options.flags.coordinator));
    return;
  }
  if (options.trio.placement) {
    binding.emplace_back("cores", ToString(*options.trio.placement));
  }
  configuration.is_simulated = options.trio.simulation.has_value();
  if (const auto& simulation = options.trio.simulation) {
    binding.emplace_back(
        "deployment",
        absl::StrFormat(
            "simulated: draft %g ms a token, verify %g ms + %g ms "
            "a row, acceptance %.4f%s",
            simulation->draft_ms, simulation->verify_ms,
            simulation->verify_row_ms, simulation->acceptance,
            options.flags.simulated_tokens_per_round
                ? absl::StrFormat(" (fitted to %g tokens per round)",
                                  *options.flags.simulated_tokens_per_round)
                : ""));
    if (simulation->draft_row_ms > 0 || simulation->outcome_hit > 0) {
      binding.emplace_back(
          "drafting ahead",
          absl::StrFormat("draft row %g ms, outcome hit %.4f",
                          simulation->draft_row_ms, simulation->outcome_hit));
    }
    return;
  }
  configuration.shares_processors = true;
  binding.emplace_back(
      "deployment", absl::StrCat("three processes on loopback: target ",
                                 BaseName(options.trio.target_model),
                                 ", draft ", BaseName(options.trio.draft_model),
                                 ", dtype ", options.trio.dtype));
  if (options.trio.num_threads > 0) {
    binding.emplace_back("threads of a node",
                         absl::StrCat(options.trio.num_threads));
  }
}

Configuration ToConfiguration(const BenchOptions& options,
                              const std::string& prompts_note) {
  const BenchFlags& flags = options.flags;
  Configuration configuration;
  AddModels(options, configuration);
  auto& binding = configuration.binding;
  if (!flags.coordinator) {
    binding.emplace_back(
        "network",
        absl::StrFormat(
            "%s%s, jitter %g ms, bandwidth %s, mean bytes to "
            "a drop %g and a reset %g (0: never), seed %d",
            flags.network == "tunnel" ? "IP packets between network namespaces"
                                      : "user-space TCP proxy",
            flags.drafter_rtt_ms ? absl::StrFormat(", %g ms to the drafter",
                                                   *flags.drafter_rtt_ms)
                                 : "",
            flags.jitter_ms,
            flags.bandwidth_mbit > 0
                ? absl::StrCat(flags.bandwidth_mbit, " Mbit/s")
                : "unlimited",
            flags.mean_bytes_to_drop, flags.mean_bytes_to_reset,
            flags.network_seed));
  }
  binding.emplace_back(
      "acceptance rule",
      flags.rule == kGreedyRuleName
          ? "greedy"
          : absl::StrCat(flags.rule, ", temperature ", flags.temperature));
  binding.emplace_back("minimal draft probability",
                       flags.drafting.min_draft_probability.has_value()
                           ? absl::StrCat(*flags.drafting.min_draft_probability)
                           : "chosen with K by auto, else 0");
  configuration.is_lossy = flags.lossy_lenience < 1;
  if (configuration.is_lossy) {
    binding.emplace_back(
        "lossy lenience",
        absl::StrCat(flags.lossy_lenience, ": not the target's law"));
  }
  binding.emplace_back("prompt lookup", flags.prompt_lookup ? "yes" : "no");
  std::string reply_format = "the coordinator's default";
  for (const auto& [name, format] : ReplyFormatNames()) {
    if (flags.reply_format == format) reply_format = name;
  }
  binding.emplace_back("reply format", reply_format);
  binding.emplace_back("prompts", prompts_note);
  binding.emplace_back("repeats",
                       absl::StrCat(options.grid.num_repeats,
                                    ", each with its own part of the prompts"));
  binding.emplace_back(
      "requests",
      absl::StrFormat("%d tokens each, begun for %g s at each point, %d "
                      "warm-up requests, timeout %g s, seed %d",
                      flags.max_tokens, flags.seconds, flags.num_warm_up,
                      flags.timeout_seconds, flags.seed));
  return configuration;
}

// No prompt is used twice in a cell, and each user has one.
absl::Status CheckEnoughPrompts(const BenchOptions& options) {
  int num_users = 1;
  for (const Load& load : options.grid.loads) {
    num_users = std::max(num_users, load.concurrency);
  }
  const int needed =
      options.grid.num_repeats * (options.flags.num_warm_up + num_users);
  if (options.prompts.size() >= static_cast<size_t>(needed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no prompt is used twice in a cell: ", options.grid.num_repeats,
      " repeats of ", options.flags.num_warm_up, " warm-up requests and ",
      num_users, " users need ", needed, " prompts at least, and there are ",
      options.prompts.size(), ": pass more by --prompts"));
}

}  // namespace

absl::StatusOr<BenchOptions> ToBenchOptions(const BenchFlags& flags,
                                            bool is_sweep,
                                            const std::string& programs) {
  OUTRIDER_RETURN_IF_ERROR(CheckTogether(flags));
  BenchOptions options = {.flags = flags};
  options.trio.programs = programs;
  OUTRIDER_ASSIGN_OR_RETURN(options.grid, ToGrid(flags, is_sweep));
  OUTRIDER_RETURN_IF_ERROR(CheckHasSpeedup(flags, options.grid));
  if (!flags.coordinator) {
    OUTRIDER_ASSIGN_OR_RETURN(options.trio,
                              ToTrio(flags, options.grid, programs));
    OUTRIDER_ASSIGN_OR_RETURN(options.network, ToNetwork(flags, options.grid));
  } else if (options.grid.rtts_ms != std::vector<double>{0}) {
    return absl::InvalidArgumentError(
        "--coordinator measures a deployment over its own network: --rtt can "
        "only be 0, nothing added");
  }
  std::string note;
  if (flags.simulate && !flags.prompts) {
    options.prompts = MakePrompts(kNumSimulatedPrompts, kSimulatedPromptLength,
                                  flags.simulation.vocab_size);
    note = absl::StrCat("made up, ", kSimulatedPromptLength, " tokens each");
  } else {
    OUTRIDER_ASSIGN_OR_RETURN(const std::string path,
                              PromptsPath(flags, programs));
    OUTRIDER_ASSIGN_OR_RETURN(options.prompts, LoadPrompts(path));
    note = absl::StrCat(options.prompts.size(), " of ", BaseName(path),
                        " (sha256 ", HashOfFile(path), ")");
  }
  OUTRIDER_RETURN_IF_ERROR(CheckEnoughPrompts(options));
  options.request = {
      .temperature = flags.rule == kGreedyRuleName ? 0 : flags.temperature,
      .max_tokens = static_cast<uint32_t>(flags.max_tokens),
      .ignore_eos = true,
      .draft_options = flags.drafting,
      .prompt_lookup = flags.prompt_lookup,
      .reply_format = flags.reply_format,
      .acceptance_rule = RuleOfName(flags.rule)};
  if (flags.lossy_lenience < 1) {
    options.request.lossy_lenience = flags.lossy_lenience;
  }
  options.configuration = ToConfiguration(options, note);
  return options;
}

}  // namespace outrider::bench
