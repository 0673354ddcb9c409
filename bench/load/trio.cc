// SPDX-License-Identifier: Apache-2.0
#include "bench/load/trio.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

using Json = nlohmann::json;

// Large models load for minutes. One that cannot load ends, and is not waited
// for.
constexpr std::chrono::minutes kStartTimeout(10);
constexpr std::chrono::minutes kMeasureTimeout(15);

double MillisecondsOf(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::vector<std::string> ModelFlags(const TrioOptions& options,
                                    const std::string& model) {
  return {"--model", model, "--dtype", options.dtype,
          absl::StrCat("--threads=", options.num_threads)};
}

std::vector<std::string> VerifierFlags(const TrioOptions& options) {
  if (!options.simulation) return ModelFlags(options, options.target_model);
  const Simulation& simulation = *options.simulation;
  return {"--simulate",
          absl::StrCat("--simulate-pass-ms=", simulation.verify_ms),
          absl::StrCat("--simulate-row-ms=", simulation.verify_row_ms),
          absl::StrCat("--simulate-vocabulary=", simulation.vocab_size)};
}

std::vector<std::string> DrafterFlags(const TrioOptions& options) {
  if (!options.simulation) return ModelFlags(options, options.draft_model);
  const Simulation& simulation = *options.simulation;
  return {
      "--simulate",
      absl::StrCat("--simulate-pass-ms=", simulation.draft_ms),
      absl::StrCat("--simulate-row-ms=", simulation.draft_row_ms),
      absl::StrFormat("--simulate-outcome-hit=%.12g", simulation.outcome_hit),
      absl::StrFormat("--simulate-acceptance=%.12g", simulation.acceptance),
      absl::StrCat("--simulate-vocabulary=", simulation.vocab_size)};
}

Cores VerifierCores(const TrioOptions& options) {
  return options.placement ? options.placement->verifier : Cores();
}
Cores DrafterCores(const TrioOptions& options) {
  return options.placement ? options.placement->drafter : Cores();
}

// Ends what blocks in reading from a program, should a cancellation come
// meanwhile.
class CancelledReads {
 public:
  CancelledReads(ChildProcess& program, Cancellation& cancellation)
      : cancellation_(cancellation),
        registration_(
            cancellation.OnCancel([&program] { program.Interrupt(); })) {}
  CancelledReads(const CancelledReads&) = delete;
  CancelledReads& operator=(const CancelledReads&) = delete;
  ~CancelledReads() { cancellation_.Forget(registration_); }

 private:
  Cancellation& cancellation_;
  const uint64_t registration_;
};

// A program to measure, and where.
struct Measured {
  std::string name = {};
  std::vector<std::string> flags = {};
  Cores cores = {};
};

absl::StatusOr<Json> RunMeasure(const TrioOptions& options,
                                const Measured& measured,
                                Cancellation& cancellation) {
  std::vector<std::string> arguments = {
      absl::StrCat(options.programs, "/", measured.name), "--measure",
      "--json"};
  arguments.insert(arguments.end(), measured.flags.begin(),
                   measured.flags.end());
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<ChildProcess> program,
                            ChildProcess::Start(arguments, measured.cores));
  const CancelledReads cancelled(*program, cancellation);
  OUTRIDER_ASSIGN_OR_RETURN(const std::string text,
                            program->ReadAll(kMeasureTimeout));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InternalError(
        absl::StrCat(measured.name, " --measure --json did not print JSON"));
  }
  return json;
}

absl::StatusOr<double> NumberOf(const Json& measured, const char* name) {
  const auto found = measured.find(name);
  if (found != measured.end() && found->is_number()) {
    return found->get<double>();
  }
  return absl::InternalError(absl::StrCat(
      "--measure --json did not print ", name, ": programs of another build?"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trio>> Trio::Start(const TrioOptions& options,
                                                  const LinkOptions& network,
                                                  Cancellation& cancellation) {
  std::unique_ptr<Trio> trio(new Trio(network, cancellation));
  if (options.uses_tunnels) {
    // Delay and jitter come with Connect.
    const LinkOptions link = {.seed = network.seed};
    OUTRIDER_ASSIGN_OR_RETURN(trio->verifier_end_, MakeFarEnd(link));
    OUTRIDER_ASSIGN_OR_RETURN(trio->drafter_end_, MakeFarEnd(link));
  }
  OUTRIDER_RETURN_IF_ERROR(trio->StartNodes(options));
  if (options.uses_tunnels) {
    OUTRIDER_ASSIGN_OR_RETURN(
        trio->coordinator_,
        trio->StartCoordinator(options, trio->verifier_, trio->drafter_));
    trio->direct_coordinator_ = trio->coordinator_;
    return trio;
  }
  OUTRIDER_RETURN_IF_ERROR(trio->StartProxies());
  OUTRIDER_ASSIGN_OR_RETURN(
      trio->direct_coordinator_,
      trio->StartCoordinator(options, trio->verifier_, trio->drafter_));
  OUTRIDER_ASSIGN_OR_RETURN(
      trio->coordinator_,
      trio->StartCoordinator(options, trio->verifier_proxy_->address(),
                             trio->drafter_proxy_->address()));
  return trio;
}

absl::Status Trio::StartNodes(const TrioOptions& options) {
  const std::string limit =
      absl::StrCat("--max-draft-tokens=", options.max_draft_tokens);
  std::vector<std::string> flags = VerifierFlags(options);
  flags.push_back(limit);
  OUTRIDER_ASSIGN_OR_RETURN(
      verifier_, StartProgram(options, "outrider-verifier", flags,
                              VerifierCores(options), verifier_end_));
  flags = DrafterFlags(options);
  flags.push_back(limit);
  OUTRIDER_ASSIGN_OR_RETURN(drafter_,
                            StartProgram(options, "outrider-drafter", flags,
                                         DrafterCores(options), drafter_end_));
  return absl::OkStatus();
}

absl::Status Trio::StartProxies() {
  OUTRIDER_ASSIGN_OR_RETURN(echo_, EchoServer::Start());
  // Delay and jitter come with Connect.
  LinkOptions link = network_;
  link.jitter = {};
  const auto start = [&link](const std::string& target) {
    return DelayProxy::Start({.target = target, .link = link});
  };
  OUTRIDER_ASSIGN_OR_RETURN(verifier_proxy_, start(verifier_));
  OUTRIDER_ASSIGN_OR_RETURN(drafter_proxy_, start(drafter_));
  OUTRIDER_ASSIGN_OR_RETURN(
      echo_proxy_, DelayProxy::Start(
                       {.target = echo_->address(), .link = DelayAlone(link)}));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Trio::StartProgram(
    const TrioOptions& options, const std::string& name,
    const std::vector<std::string>& flags, const Cores& cores,
    const std::optional<FarEnd>& end) {
  const std::string host = end ? end->tunnel->far_host() : "127.0.0.1";
  std::vector<std::string> arguments = {
      absl::StrCat(options.programs, "/", name), "--listen",
      absl::StrCat(host, ":0")};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  // A tunnel is no loopback, but it does not leave this machine either.
  if (options.uses_tunnels) arguments.push_back("--insecure");
  std::optional<ScopedNamespace> entered;
  if (end) {
    OUTRIDER_ASSIGN_OR_RETURN(ScopedNamespace scope,
                              ScopedNamespace::Enter(end->space));
    entered.emplace(std::move(scope));
  }
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> program,
                            ChildProcess::Start(arguments, cores));
  entered.reset();
  const CancelledReads cancelled(*program, cancellation_);
  OUTRIDER_ASSIGN_OR_RETURN(std::string address,
                            program->ListenAddress(kStartTimeout));
  programs_.push_back(std::move(program));
  return address;
}

absl::StatusOr<std::string> Trio::StartCoordinator(const TrioOptions& options,
                                                   const std::string& verifier,
                                                   const std::string& drafter) {
  std::vector<std::string> flags = {"--verifier", verifier, "--drafter",
                                    drafter, "--max-sessions=4096"};
  if (!options.simulation) {
    flags.insert(flags.end(), {"--tokenizer", options.target_model});
  }
  return StartProgram(options, "outrider-coordinator", flags);
}

absl::StatusOr<std::string> Trio::Connect(const RoundTrips& nominal) {
  if (verifier_end_ && drafter_end_) return ConnectTunnels(nominal);
  if (!HasEffect(Link(nominal.drafter_ms)) &&
      !HasEffect(Link(nominal.verifier_ms))) {
    achieved_ = {};
    return direct_coordinator_;
  }
  OUTRIDER_RETURN_IF_ERROR(drafter_proxy_->SetLink(Link(nominal.drafter_ms)));
  OUTRIDER_RETURN_IF_ERROR(verifier_proxy_->SetLink(Link(nominal.verifier_ms)));
  OUTRIDER_ASSIGN_OR_RETURN(achieved_.verifier_ms,
                            Calibrate(nominal.verifier_ms));
  achieved_.drafter_ms = achieved_.verifier_ms;
  if (nominal.drafter_ms != nominal.verifier_ms) {
    OUTRIDER_ASSIGN_OR_RETURN(achieved_.drafter_ms,
                              Calibrate(nominal.drafter_ms));
  }
  return coordinator_;
}

absl::Status Trio::CheckPrograms() {
  for (const std::unique_ptr<ChildProcess>& program : programs_) {
    OUTRIDER_RETURN_IF_ERROR(program->CheckRuns());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Trio::ConnectTunnels(const RoundTrips& nominal) {
  OUTRIDER_ASSIGN_OR_RETURN(achieved_.verifier_ms,
                            Calibrate(*verifier_end_, nominal.verifier_ms));
  OUTRIDER_ASSIGN_OR_RETURN(achieved_.drafter_ms,
                            Calibrate(*drafter_end_, nominal.drafter_ms));
  return coordinator_;
}

absl::StatusOr<double> Trio::Calibrate(const FarEnd& end, double nominal_ms) {
  const LinkOptions link = Link(nominal_ms);
  OUTRIDER_RETURN_IF_ERROR(end.tunnel->SetLink(DelayAlone(link)));
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::chrono::nanoseconds achieved,
      outrider::bench::Calibrate(*end.tunnel, end.space, link));
  OUTRIDER_RETURN_IF_ERROR(end.tunnel->SetLink(link));
  return MillisecondsOf(achieved);
}

LinkOptions Trio::Link(double rtt_ms) const {
  LinkOptions link = network_;
  link.delay = std::chrono::nanoseconds(static_cast<int64_t>(5e5 * rtt_ms));
  return link;
}

// The echo has a proxy of its own with the same delay: nodes answer only gRPC.
absl::StatusOr<double> Trio::Calibrate(double nominal_ms) {
  constexpr int kTries = 3;
  const LinkOptions link = DelayAlone(Link(nominal_ms));
  OUTRIDER_RETURN_IF_ERROR(echo_proxy_->SetLink(link));
  const std::chrono::nanoseconds nominal = 2 * link.delay;
  const int num_echoes = nominal_ms < 10 ? 21 : 5;
  double achieved_ms = 0;
  for (int i = 0; i < kTries; ++i) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const std::chrono::nanoseconds achieved,
        MeasureRoundTrip(echo_proxy_->address(), num_echoes));
    achieved_ms = MillisecondsOf(achieved);
    // Jitter is asked for: it is no error.
    if (std::abs(achieved_ms - nominal_ms) <=
        MillisecondsOf(RoundTripTolerance(nominal) + 2 * network_.jitter)) {
      return achieved_ms;
    }
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "a round trip of %g ms took %.2f ms: this machine is too busy to emulate "
      "it",
      nominal_ms, achieved_ms));
}

absl::StatusOr<InsideTimes> MeasureVerifier(const TrioOptions& options,
                                            Cancellation& cancellation) {
  OUTRIDER_ASSIGN_OR_RETURN(const Json json,
                            RunMeasure(options,
                                       {.name = "outrider-verifier",
                                        .flags = VerifierFlags(options),
                                        .cores = VerifierCores(options)},
                                       cancellation));
  InsideTimes times;
  OUTRIDER_ASSIGN_OR_RETURN(const double rate,
                            NumberOf(json, "plain_tokens_per_second"));
  OUTRIDER_ASSIGN_OR_RETURN(const double sampled_rate,
                            NumberOf(json, "plain_sampled_tokens_per_second"));
  times.plain_token_ms = 1e3 / rate;
  times.plain_sampled_token_ms = 1e3 / sampled_rate;
  times.rows_ms = json.value("rows_ms", std::vector<double>());
  return times;
}

absl::StatusOr<double> MeasureDraftStepMs(const TrioOptions& options,
                                          bool is_sampled,
                                          Cancellation& cancellation) {
  OUTRIDER_ASSIGN_OR_RETURN(const Json json,
                            RunMeasure(options,
                                       {.name = "outrider-drafter",
                                        .flags = DrafterFlags(options),
                                        .cores = DrafterCores(options)},
                                       cancellation));
  return NumberOf(json, is_sampled ? "draft_sampled_step_ms" : "draft_step_ms");
}

}  // namespace outrider::bench
