// SPDX-License-Identifier: Apache-2.0
#include "bench/load/measurement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace outrider::bench {
namespace {

using client::GenerationReport;

double Ms(double seconds) { return seconds * 1e3; }

double Ms(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// Sums over the rounds after the first one of each generation.
struct Sums {
  int num_rounds = 0;
  int num_committed = 0;
  RoundSplit split = {};
};

void AddSplit(const RoundStats& round, RoundSplit& split) {
  split.draft_ms += Ms(round.drafter.compute_seconds);
  // A hit has made no call of its own.
  const bool is_hit = round.ahead.outcome == AheadStats::Outcome::kHit;
  (is_hit ? split.wait_ms : split.drafter_network_ms) +=
      Ms(round.drafter.call_seconds - round.drafter.compute_seconds);
  split.verify_ms += Ms(round.verifier.compute_seconds);
  split.verifier_network_ms +=
      Ms(round.verifier.call_seconds - round.verifier.compute_seconds);
  split.rest_ms += Ms(round.round_seconds - round.drafter.call_seconds -
                      round.verifier.call_seconds);
}

void AddCounts(const RoundStats& round, const RoundStats& before,
               Counts& counts) {
  ++counts.num_rounds;
  counts.num_drafted += round.num_drafted;
  counts.num_accepted += round.num_accepted;
  counts.ahead.Add(round, before);
  counts.drafter.num_bytes += round.drafter.wire_bytes;
  counts.drafter.num_messages += round.drafter.num_messages;
  counts.verifier.num_bytes += round.verifier.wire_bytes;
  counts.verifier.num_messages += round.verifier.num_messages;
}

void AddAcceptance(const RoundStats& round, Measurement& result) {
  const size_t length = static_cast<size_t>(round.num_drafted);
  if (length > result.offered.size()) {
    result.offered.resize(length);
    result.accepted.resize(length);
  }
  for (int i = 0; i < round.num_drafted; ++i) {
    ++result.offered[i];
    if (i < round.num_accepted) ++result.accepted[i];
  }
}

void AddRounds(const GenerationReport& report, Sums& sums,
               Measurement& result) {
  for (size_t i = 0; i < report.rounds.size(); ++i) {
    const RoundStats& round = report.rounds[i];
    AddCounts(round, i == 0 ? RoundStats{} : report.rounds[i - 1],
              result.counts);
    if (i == 0) continue;
    ++sums.num_rounds;
    sums.num_committed += round.num_committed();
    AddSplit(round, sums.split);
    AddAcceptance(round, result);
  }
}

}  // namespace

Spread Summarize(std::vector<double> sample) {
  if (sample.empty()) return {};
  std::sort(sample.begin(), sample.end());
  const auto at = [&sample](double share) {
    const double rank = std::ceil(share * static_cast<double>(sample.size()));
    return sample[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  return {.p50 = at(0.5),
          .p90 = at(0.9),
          .p99 = at(0.99),
          .mean = std::accumulate(sample.begin(), sample.end(), 0.0) /
                  static_cast<double>(sample.size())};
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

Measurement Measure(const Point& point, const LoadResult& result) {
  Measurement measured = {.point = point,
                          .ran_out_of_prompts = result.ran_out_of_prompts};
  std::vector<double> first_token_ms;
  std::vector<double> token_ms;
  std::vector<double> request_ms;
  Sums sums;
  double in_flight_ms = 0;
  for (const RequestResult& request : result.requests) {
    if (!request.status.ok()) {
      if (measured.num_failures++ == 0) {
        measured.first_failure = std::string(request.status.message());
      }
      continue;
    }
    const GenerationReport& report = request.report;
    ++measured.num_requests;
    measured.num_tokens += static_cast<int>(report.tokens.size());
    measured.num_draft_failures += report.finish->num_draft_failures;
    measured.num_misses += report.finish->num_misses;
    in_flight_ms += Ms(request.duration);
    request_ms.push_back(Ms(request.duration));
    first_token_ms.push_back(Ms(report.first_token_time));
    const int num_later =
        static_cast<int>(report.tokens.size()) - report.num_first_tokens;
    if (num_later > 0) {
      token_ms.push_back(Ms(report.last_token_time - report.first_token_time) /
                         num_later);
    }
    AddRounds(report, sums, measured);
  }
  const double wall_ms = Ms(result.wall_time);
  measured.wall_seconds = wall_ms / 1e3;
  measured.mean_in_flight = Ratio(in_flight_ms, wall_ms);
  measured.first_token_ms = Summarize(std::move(first_token_ms));
  measured.token_ms = Summarize(std::move(token_ms));
  measured.request_ms = Summarize(std::move(request_ms));
  measured.tokens_per_second =
      Ratio(measured.num_tokens, measured.wall_seconds);
  measured.tokens_per_second_per_user = Ratio(1e3, measured.token_ms.mean);
  measured.num_rounds = sums.num_rounds;
  measured.tokens_per_round = Ratio(sums.num_committed, sums.num_rounds);
  const auto per_token = [&measured](int64_t count) {
    return Ratio(static_cast<double>(count), measured.num_tokens);
  };
  const Counts& counts = measured.counts;
  measured.drafter_bytes_per_token = per_token(counts.drafter.num_bytes);
  measured.verifier_bytes_per_token = per_token(counts.verifier.num_bytes);
  measured.drafter_messages_per_token = per_token(counts.drafter.num_messages);
  measured.verifier_messages_per_token =
      per_token(counts.verifier.num_messages);
  for (double RoundSplit::*part :
       {&RoundSplit::draft_ms, &RoundSplit::drafter_network_ms,
        &RoundSplit::verify_ms, &RoundSplit::verifier_network_ms,
        &RoundSplit::wait_ms, &RoundSplit::rest_ms}) {
    measured.split.*part = Ratio(sums.split.*part, sums.num_rounds);
  }
  return measured;
}

double Measurement::asked_ahead() const {
  return Ratio(counts.ahead.num_asked(), num_rounds);
}

double Measurement::speedup() const {
  return point.cell.load.is_crowd() ? tokens_per_second * plain_token_ms / 1e3
                                    : Ratio(plain_token_ms, token_ms.mean);
}

double Measurement::network_speedup() const {
  return point.cell.load.is_crowd()
             ? Ratio(tokens_per_second, plain_network_tokens_per_second)
             : Ratio(plain_network_token_ms, token_ms.mean);
}

}  // namespace outrider::bench
