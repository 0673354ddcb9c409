// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/coordinator_metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "coordinator/service/generation_tally.h"
#include "core/wire/finish_reason_name.h"

namespace outrider {
namespace {

std::string NameOf(std::optional<FinishReason> reason) {
  return reason.has_value() ? NameOf(*reason) : "none";
}

std::string NameOf(absl::StatusCode code) {
  return absl::StatusCodeToString(code);
}

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// The log has three places.
double Short(double number) { return std::round(number * 1000) / 1000; }

prometheus::Counter& AddFallback(MetricRegistry& registry,
                                 const std::string& cause) {
  return registry.AddCounter("fallback_total",
                             "Rounds without a draft of the drafter's, some of "
                             "which prompt lookup fills in, by cause.",
                             {{"cause", cause}});
}

prometheus::Counter& AddAhead(MetricRegistry& registry,
                              const std::string& outcome) {
  return registry.AddCounter(
      "drafted_ahead_total",
      "Rounds whose drafts were asked for before them, by whether they came.",
      {{"outcome", outcome}});
}

// Draft tokens that came to nothing.
int Wasted(const RoundStats& round) {
  const bool is_hit = round.ahead.outcome == AheadStats::Outcome::kHit;
  return round.num_drafted - round.num_accepted + round.ahead.num_drafted -
         (is_hit ? round.num_drafted : 0);
}

}  // namespace

CoordinatorMetrics::CoordinatorMetrics(MetricRegistry& registry)
    : registry_(registry),
      rounds_(registry.AddCounter("rounds_total", "Rounds streamed.")),
      drafted_(registry.AddCounter("draft_tokens_total",
                                   "Draft tokens offered to the verifier.")),
      accepted_(registry.AddCounter("accepted_tokens_total",
                                    "Draft tokens accepted.")),
      looked_up_(registry.AddCounter(
          "draft_tokens_looked_up_total",
          "Draft tokens taken from the text so far, without the drafter.")),
      passes_(registry.AddCounter(
          "verifier_passes_total",
          "Passes of verifiers for rounds: one each, and one for each token "
          "that they went on with.")),
      wasted_(registry.AddCounter("draft_tokens_wasted_total",
                                  "Draft tokens offered and not accepted, or "
                                  "made ahead for another verdict, of calls "
                                  "that were not given up.")),
      tokens_(registry.AddCounter("generated_tokens_total",
                                  "Tokens streamed to clients.")),
      lossy_(registry.AddCounter(
          "lossy_requests_total",
          "Generations begun with a lossy lenience: not exact.")),
      quarantined_(registry.AddCounter(
          "quarantined_requests_total",
          "Refused, as verifiers died of late while they had their prompt.")),
      residuals_lost_(registry.AddCounter(
          "residuals_lost_total",
          "Refused drafts whose residual rounding left empty.")),
      offered_at_(AddPositions(registry, "draft_tokens_per_position_total",
                               "Draft tokens offered, by place in the round.")),
      accepted_at_(
          AddPositions(registry, "accepted_tokens_per_position_total",
                       "Draft tokens accepted, by place in the round.")),
      fallbacks_(
          {{PlainReason::kDraftFailed, &AddFallback(registry, "draft_failed")},
           {PlainReason::kDrafterFills,
            &AddFallback(registry, "drafter_fills")},
           {PlainReason::kDrafterSlow, &AddFallback(registry, "drafter_slow")},
           {PlainReason::kNoDrafter, &AddFallback(registry, "no_drafter")}}),
      ahead_({{AheadStats::Outcome::kHit, &AddAhead(registry, "hit")},
              {AheadStats::Outcome::kMiss, &AddAhead(registry, "miss")}}),
      ahead_wait_(registry.AddDuration(
          "draft_ahead_wait_seconds",
          "Time that a round waited for drafts made ahead, 0 where it did not: "
          "a busy drafter shows here.")),
      first_token_(registry.AddDuration(
          "time_to_first_token_seconds",
          "From a call's arrival, before its request is read, to its first "
          "tokens. Streams that are resumed are left out.")),
      per_token_(registry.AddDuration(
          "time_per_output_token_seconds",
          "(last token - first token) / tokens after the first, a request, "
          "less what it waited for its client to read.")),
      round_(registry.AddDuration("round_duration_seconds", "One round.")),
      running_(registry.AddGauge("requests_running", "Generations under way.")),
      effective_k_(registry.AddGauge(
          "effective_k", "Draft tokens a round, mean of the last 10 s.")),
      drafter_(AddPeer(registry, "drafter")),
      verifier_(AddPeer(registry, "verifier")) {
  using absl::StatusCode;
  const auto add = [&](std::optional<FinishReason> reason, StatusCode code) {
    const auto key = std::pair(NameOf(reason), NameOf(code));
    requests_[key] = &registry_.AddCounter(
        "requests_total", "Generations ended, by finish reason and code.",
        {{"finish_reason", key.first}, {"code", key.second}});
  };
  for (const FinishReason reason :
       {FinishReason::kEos, FinishReason::kStop, FinishReason::kLength}) {
    add(reason, StatusCode::kOk);
  }
  for (const StatusCode code :
       {StatusCode::kCancelled, StatusCode::kInvalidArgument,
        StatusCode::kFailedPrecondition, StatusCode::kResourceExhausted,
        StatusCode::kUnavailable, StatusCode::kAborted, StatusCode::kInternal,
        StatusCode::kUnknown}) {
    add(std::nullopt, code);
  }
}

CoordinatorMetrics::Peer CoordinatorMetrics::AddPeer(MetricRegistry& registry,
                                                     const std::string& peer) {
  const auto bytes = [&](const std::string& direction) -> prometheus::Counter& {
    return registry.AddCounter("rpc_bytes_total",
                               "Protobuf bytes of Draft and Verify.",
                               {{"peer", peer}, {"direction", direction}});
  };
  std::map<MissReason, prometheus::Counter*> misses;
  for (const MissReason reason : kMissReasons) {
    misses[reason] = &registry.AddCounter(
        "cache_misses_total",
        "Times a peer's cache was not what was assumed. prefix: it held other "
        "tokens, which is a defect.",
        {{"peer", peer}, {"reason", NameOf(reason)}});
  }
  return {
      .network = registry.AddDuration("rpc_network_seconds",
                                      "Calls of a round, less what the peer "
                                      "says of its computing and queue.",
                                      {{"peer", peer}}),
      .sent = bytes("sent"),
      .received = bytes("received"),
      .misses = misses,
      .reused = registry.AddCounter(
          "reused_prefix_tokens_total",
          "Tokens that a peer had from other sessions, and did not run.",
          {{"peer", peer}})};
}

CoordinatorMetrics::Counters CoordinatorMetrics::AddPositions(
    MetricRegistry& registry, const std::string& name,
    const std::string& help) {
  Counters counters;
  for (int i = 0; i < kNumPositions; ++i) {
    const std::string position =
        absl::StrFormat("%d%s", i, i == kNumPositions - 1 ? "+" : "");
    counters[i] = &registry.AddCounter(name, help, {{"position", position}});
  }
  return counters;
}

void CoordinatorMetrics::Count(const Peer& peer, const RoundStats::Link& link) {
  // A call that failed says nothing of the network, however long it took.
  if (link.call_seconds > 0 && link.num_failures == 0) {
    peer.network.Observe(std::max(
        0.0, link.call_seconds - link.compute_seconds - link.queue_seconds));
  }
  peer.sent.Increment(static_cast<double>(link.sent_bytes));
  peer.received.Increment(
      static_cast<double>(link.wire_bytes - link.sent_bytes));
  for (const auto& [reason, counter] : peer.misses) {
    const int num_misses = link.misses[static_cast<int>(reason)];
    if (num_misses > 0) counter->Increment(num_misses);
  }
  peer.reused.Increment(static_cast<double>(link.num_reused));
}

void CoordinatorMetrics::Tally::Round(const GenerationUpdate& update) {
  const RoundStats& round = *update.round;
  const int num_new = static_cast<int>(update.tokens.size());
  ++num_rounds_;
  if (num_new > 0) {
    last_token_ = Clock::now() - waited_;
    if (num_tokens_ == 0) {
      first_token_ = last_token_;
      first_block_ = num_new;
      if (!request_.is_resumed) {
        metrics_.first_token_.Observe(Since(request_.arrival));
      }
    }
  }
  num_tokens_ += num_new;

  metrics_.rounds_.Increment();
  metrics_.round_.Observe(round.round_seconds);
  metrics_.tokens_.Increment(num_new);
  metrics_.drafted_.Increment(round.num_drafted);
  metrics_.accepted_.Increment(round.num_accepted);
  metrics_.looked_up_.Increment(round.num_looked_up);
  metrics_.passes_.Increment(round.num_passes());
  metrics_.wasted_.Increment(Wasted(round));
  if (const auto ahead = metrics_.ahead_.find(round.ahead.outcome);
      ahead != metrics_.ahead_.end()) {
    ahead->second->Increment();
    metrics_.ahead_wait_.Observe(round.ahead.wait_seconds);
  }
  for (int i = 0; i < round.num_drafted; ++i) {
    const int place = std::min(i, kNumPositions - 1);
    metrics_.offered_at_[place]->Increment();
    if (i < round.num_accepted) metrics_.accepted_at_[place]->Increment();
  }
  if (const auto fallback = metrics_.fallbacks_.find(round.plain_reason);
      fallback != metrics_.fallbacks_.end()) {
    fallback->second->Increment();
  }
  if (round.lost_residual) metrics_.residuals_lost_.Increment();
  // A round that waits for drafts made ahead waits for the drafter's passes.
  RoundStats::Link drafter = round.drafter;
  drafter.call_seconds -= round.ahead.wait_seconds;
  CoordinatorMetrics::Count(metrics_.drafter_, drafter);
  CoordinatorMetrics::Count(metrics_.verifier_, round.verifier);
}

void CoordinatorMetrics::Tally::End(std::optional<FinishReason> reason,
                                    absl::StatusCode code) {
  auto found = metrics_.requests_.find({NameOf(reason), NameOf(code)});
  if (found == metrics_.requests_.end()) {
    found =
        metrics_.requests_.find({"none", NameOf(absl::StatusCode::kUnknown)});
  }
  found->second->Increment();
  const int num_later = num_tokens_ - first_block_;
  if (num_later > 0) {
    const std::chrono::duration<double> time = last_token_ - first_token_;
    metrics_.per_token_.Observe(time.count() / num_later);
  }
  metrics_.running_.Decrement();
}

CoordinatorMetrics::Totals CoordinatorMetrics::Read() const {
  Totals totals = {.rounds = rounds_.Value(),
                   .tokens = tokens_.Value(),
                   .drafted = drafted_.Value(),
                   .accepted = accepted_.Value()};
  for (int i = 0; i < kNumPositions; ++i) {
    totals.offered_at[i] = offered_at_[i]->Value();
    totals.accepted_at[i] = accepted_at_[i]->Value();
  }
  return totals;
}

LogFields CoordinatorMetrics::TakeSummary(double seconds) {
  const Totals now = Read();
  const Totals before = std::exchange(reported_, now);
  const double rounds = now.rounds - before.rounds;
  const double tokens = now.tokens - before.tokens;
  const double drafted = now.drafted - before.drafted;
  const double accepted = now.accepted - before.accepted;
  effective_k_.Set(Ratio(drafted, rounds));
  if (rounds == 0) return {};
  std::vector<double> by_position;
  for (int i = 0; i < kNumPositions; ++i) {
    const double offered = now.offered_at[i] - before.offered_at[i];
    if (offered == 0) break;
    by_position.push_back(
        Short(Ratio(now.accepted_at[i] - before.accepted_at[i], offered)));
  }
  return {{"seconds", Short(seconds)},
          {"rounds", rounds},
          {"tokens", tokens},
          {"tokens_per_second", Short(Ratio(tokens, seconds))},
          {"tokens_per_round", Short(Ratio(tokens, rounds))},
          {"drafted", drafted},
          {"accepted", accepted},
          {"acceptance", Short(Ratio(accepted, drafted))},
          {"acceptance_by_position", by_position}};
}

}  // namespace outrider
