// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/report/report.h"
#include "bench/report/users_chart.h"

namespace outrider::bench {
namespace {

// A column of the CSV file.
struct Column {
  std::string name;
  std::function<std::string(const CellReport&)> value;
};

std::string Number(double value) { return absl::StrFormat("%.6g", value); }
std::string Number(const std::optional<double>& value) {
  return value ? Number(*value) : "";
}

// "0.82 0.66": accepted / offered by position.
std::string Acceptance(const Measurement& m) {
  std::vector<std::string> shares;
  for (size_t i = 0; i < m.offered.size(); ++i) {
    shares.push_back(absl::StrFormat(
        "%.3f", static_cast<double>(m.accepted[i]) / m.offered[i]));
  }
  return absl::StrJoin(shares, " ");
}

template <typename Get>
Column NumberColumn(std::string name, Get get) {
  return {std::move(name),
          [get](const CellReport& cell) { return Number(get(cell)); }};
}
template <typename Value>
Column MeasuredColumn(std::string name, Value Measurement::*member) {
  return {std::move(name), [member](const CellReport& cell) {
            return Number(cell.measured.*member);
          }};
}

void AddSpread(const std::string& name, Spread Measurement::*spread,
               std::vector<Column>& columns) {
  const std::vector<std::pair<const char*, double Spread::*>> parts = {
      {"p50", &Spread::p50},
      {"p90", &Spread::p90},
      {"p99", &Spread::p99},
      {"mean", &Spread::mean}};
  for (const auto& [part, member] : parts) {
    columns.push_back({absl::StrCat(name, "_", part),
                       [spread, member = member](const CellReport& cell) {
                         return Number(cell.measured.*spread.*member);
                       }});
  }
}

std::vector<Column> Columns() {
  using M = Measurement;
  std::vector<Column> columns = {
      NumberColumn("rtt_ms", [](const auto& c) { return c.cell().rtt_ms; }),
      MeasuredColumn("achieved_verifier_rtt_ms", &M::verifier_rtt_ms),
      MeasuredColumn("achieved_drafter_rtt_ms", &M::drafter_rtt_ms),
      NumberColumn("concurrency",
                   [](const auto& c) { return c.cell().load.concurrency; }),
      NumberColumn("requests_per_second",
                   [](const auto& c) { return c.cell().load.rate; }),
      {"schedule",
       [](const CellReport& c) { return NameOf(c.cell().schedule); }},
      {"k", [](const CellReport& c) { return NameOfK(c.cell().k); }},
      NumberColumn("repeats", [](const auto& c) { return c.num_repeats; }),
      NumberColumn("speedup_over_plain_in_verifier",
                   [](const auto& c) { return OrNone(c.speedup); }),
      NumberColumn("speedup_lowest",
                   [](const auto& c) { return OrNone(c.lowest_speedup); }),
      NumberColumn("speedup_highest",
                   [](const auto& c) { return OrNone(c.highest_speedup); }),
      NumberColumn("speedup_over_k0_same_network",
                   [](const auto& c) { return OrNone(c.network_speedup); }),
      NumberColumn("predicted_speedup",
                   [](const auto& c) { return c.predicted_speedup(); }),
      MeasuredColumn("requests", &M::num_requests),
      MeasuredColumn("failures", &M::num_failures),
      MeasuredColumn("draft_failures", &M::num_draft_failures),
      MeasuredColumn("misses", &M::num_misses),
      MeasuredColumn("ran_out_of_prompts", &M::ran_out_of_prompts),
      MeasuredColumn("tokens", &M::num_tokens)};
  AddSpread("time_to_first_token_ms", &M::first_token_ms, columns);
  AddSpread("time_per_output_token_ms", &M::token_ms, columns);
  AddSpread("end_to_end_ms", &M::request_ms, columns);
  columns.insert(
      columns.end(),
      {MeasuredColumn("tokens_per_second", &M::tokens_per_second),
       MeasuredColumn("tokens_per_second_per_user",
                      &M::tokens_per_second_per_user),
       {"acceptance_by_position",
        [](const CellReport& cell) { return Acceptance(cell.measured); }},
       MeasuredColumn("tokens_per_round", &M::tokens_per_round),
       MeasuredColumn("drafter_bytes_per_token", &M::drafter_bytes_per_token),
       MeasuredColumn("verifier_bytes_per_token", &M::verifier_bytes_per_token),
       MeasuredColumn("drafter_messages_per_token",
                      &M::drafter_messages_per_token),
       MeasuredColumn("verifier_messages_per_token",
                      &M::verifier_messages_per_token)});
  const std::vector<std::pair<const char*, double RoundSplit::*>> parts = {
      {"round_draft_ms", &RoundSplit::draft_ms},
      {"round_drafter_network_ms", &RoundSplit::drafter_network_ms},
      {"round_verify_ms", &RoundSplit::verify_ms},
      {"round_verifier_network_ms", &RoundSplit::verifier_network_ms},
      {"round_wait_ms", &RoundSplit::wait_ms},
      {"round_rest_ms", &RoundSplit::rest_ms}};
  for (const auto& [name, member] : parts) {
    columns.push_back({name, [member = member](const CellReport& cell) {
                         return Number(cell.measured.split.*member);
                       }});
  }
  columns.push_back(NumberColumn("ahead_hit_share", [](const auto& c) {
    return c.measured.counts.ahead.hit_share();
  }));
  columns.push_back(
      NumberColumn("draft_tokens_wasted_per_token",
                   [](const auto& c) { return c.WastedShare(); }));
  columns.push_back(
      MeasuredColumn("plain_in_verifier_token_ms", &M::plain_token_ms));
  return columns;
}

// " **2.15** (2.20)", by what there is to compare with.
std::string HeatMapText(const CellReport& cell, bool is_best) {
  const char* const mark = is_best ? "**" : "";
  const std::string over_k0 =
      cell.network_speedup > 0 ? absl::StrFormat("(%.2f)", cell.network_speedup)
                               : "";
  if (cell.speedup <= 0) return absl::StrCat(" ", mark, over_k0, mark);
  return absl::StrCat(" ", mark, TimesText(cell.speedup), mark,
                      over_k0.empty() ? "" : " ", over_k0);
}

std::string HeatMap(const Report& report, const Load& load) {
  std::string text = absl::StrCat("| RTT (achieved) |");
  std::string line = "|---|";
  for (const Drafting& way : report.draftings()) {
    absl::StrAppend(&text, " K = ", way.ToString(), " |");
    absl::StrAppend(&line, "---|");
  }
  absl::StrAppend(&text, "\n", line, "\n");
  for (const double rtt_ms : report.rtts_ms()) {
    const CellReport* const best = report.Best(rtt_ms, load);
    if (best == nullptr) continue;
    absl::StrAppendFormat(&text, "| %g ms", rtt_ms);
    if (best->measured.verifier_rtt_ms) {
      absl::StrAppendFormat(&text, " (%.2f)", *best->measured.verifier_rtt_ms);
    }
    absl::StrAppend(&text, " |");
    for (const Drafting& way : report.draftings()) {
      const CellReport* const cell = report.Find({.rtt_ms = rtt_ms,
                                                  .load = load,
                                                  .schedule = way.schedule,
                                                  .k = way.k});
      if (cell != nullptr) text += HeatMapText(*cell, cell == best);
      text += " |";
    }
    text += "\n";
  }
  return text;
}

std::string Milliseconds(const Spread& spread) {
  return absl::StrFormat("%.1f / %.1f / %.1f / %.1f", spread.p50, spread.p90,
                         spread.p99, spread.mean);
}

std::string AheadHits(const Measurement& m) {
  const AheadCounts& ahead = m.counts.ahead;
  return ahead.num_asked() == 0
             ? ""
             : absl::StrFormat("%.0f", 100 * ahead.hit_share());
}

std::string CellTable(const Report& report) {
  std::string text =
      "| RTT | achieved | load | K | speed-up | over K = 0 | predicted | "
      "tokens per round | acceptance "
      "by position | drafted ahead: hits, % | drafts wasted per token | "
      "ms to first token | ms per token | ms end to end | "
      "tokens/s | tokens/s per user | bytes per token: drafter + verifier | "
      "messages per token | "
      "round: draft + "
      "network "
      "+ verify + rest, ms | requests | failures |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---"
      "|"
      "---|---|---|\n";
  for (const CellReport& cell : report.cells) {
    const Measurement& m = cell.measured;
    absl::StrAppendFormat(
        &text,
        "| %g | %s | %s | %s | %s | %s | %s | %.2f | %s | %s | %.2f | %s | "
        "%s | %s | "
        "%.0f | %.0f | %.0f + %.0f | %.2f + %.2f | %.2f + %.2f + %.2f + %.2f | "
        "%d | %d |\n",
        cell.cell().rtt_ms, AchievedRtt(m), cell.cell().load.ToString(),
        cell.cell().drafting().ToString(), TimesText(cell.speedup),
        TimesText(cell.network_speedup),
        cell.predicted_speedup()
            ? absl::StrFormat("%.2f", *cell.predicted_speedup())
            : "",
        m.tokens_per_round, Acceptance(m), AheadHits(m), cell.WastedShare(),
        Milliseconds(m.first_token_ms), Milliseconds(m.token_ms),
        Milliseconds(m.request_ms), m.tokens_per_second,
        m.tokens_per_second_per_user, m.drafter_bytes_per_token,
        m.verifier_bytes_per_token, m.drafter_messages_per_token,
        m.verifier_messages_per_token, m.split.draft_ms, m.split.network_ms(),
        m.split.verify_ms, m.split.rest_ms, m.num_requests, m.num_failures);
  }
  return text;
}

}  // namespace

std::string ToCsv(const Report& report) {
  const std::vector<Column> columns = Columns();
  std::string text = "simulated,lossy";
  for (const Column& column : columns) {
    absl::StrAppend(&text, ",", column.name);
  }
  text += "\n";
  for (const CellReport& cell : report.cells) {
    text += report.configuration.is_simulated ? "yes" : "no";
    text += report.configuration.is_lossy ? ",yes" : ",no";
    for (const Column& column : columns) {
      absl::StrAppend(&text, ",", column.value(cell));
    }
    text += "\n";
  }
  return text;
}

std::string ToMarkdown(const Report& report) {
  std::string text = "# Speed-up over round-trip time and K\n\n";
  if (report.configuration.is_simulated) {
    text +=
        "**Simulated nodes**: timing models in place of weights; messages, "
        "coordinator and network emulation are real.\n\n";
  }
  if (report.configuration.is_lossy) {
    text +=
        "**Lossy**: drafts were accepted with a lenience below 1; the text "
        "does not have the target's law.\n\n";
  }
  text +=
      "Each cell: speed-up over plain decoding inside the verifier without any "
      "network, and in brackets over K = 0 through the same network and load. "
      "Of one user, and where requests come at random times, times per token "
      "are compared; of several users tokens a second of all, while they wait "
      "for first tokens too. Bold: the best K and schedule of the row.\n";
  for (const Load& load : report.loads()) {
    absl::StrAppend(&text, "\n## ", load.ToString(), "\n\n",
                    HeatMap(report, load));
  }
  text += UsersTable(report);
  const std::vector<std::string> cut_short = report.CutShort();
  if (!cut_short.empty()) {
    absl::StrAppend(&text,
                    "\nEnded early for lack of prompts, as none is used twice "
                    "in a cell; figures are of the time that they took: ",
                    absl::StrJoin(cut_short, "; "), ".\n");
  }
  if (report.median_prediction_error) {
    absl::StrAppendFormat(
        &text,
        "\nFormula and measurement (1 user, beyond the lowest round trip) "
        "differ by %.1f %% in the median cell.\n",
        100 * *report.median_prediction_error);
  }
  if (const std::string broken = report.BrokenAssumption(); !broken.empty()) {
    absl::StrAppend(&text, "\n", broken, "\n");
  }
  const std::vector<std::string> large = report.LargeDifferences();
  if (!large.empty()) {
    absl::StrAppendFormat(&text, "\nBy more than %.0f %% differ:\n\n",
                          100 * kLargeDifference);
    for (const std::string& cell : large) {
      absl::StrAppend(&text, "- ", cell, "\n");
    }
  }
  absl::StrAppend(&text,
                  "\n## All cells\n\nTimes are p50 / p90 / p99 / mean.\n\n",
                  CellTable(report), "\n## Configuration\n\n");
  for (const auto* pairs :
       {&report.configuration.binding, &report.configuration.notes}) {
    for (const auto& [name, value] : *pairs) {
      absl::StrAppend(&text, "- ", name, ": ", value, "\n");
    }
  }
  return text;
}

}  // namespace outrider::bench
