// SPDX-License-Identifier: Apache-2.0
#include "bench/report/html_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/report/rounds_chart.h"
#include "bench/report/svg_charts.h"
#include "bench/report/svg_elements.h"
#include "bench/report/users_chart.h"

namespace outrider::bench {
namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Outrider: speed-up over round-trip time and K</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; margin: 2em auto;
       max-width: 1080px; padding: 0 1em; }
h1 { font-size: 1.6em; margin-bottom: 0.2em; }
h2 { font-size: 1.2em; margin: 2em 0 0.4em; border-bottom: 1px solid #d9dee3; }
h3 { font-size: 1em; margin: 1em 0 0.3em; }
svg { max-width: 100%; height: auto; }
svg text { font: 13px system-ui, sans-serif; }
svg text.small { font-size: 11.5px; }
svg text.strong { font-weight: 600; }
svg text.value { font-size: 16px; font-weight: 600; }
table { border-collapse: collapse; font-size: 12.5px; }
th, td { border: 1px solid #d9dee3; padding: 3px 7px; text-align: right;
         white-space: nowrap; }
th { background: #f4f6f8; font-weight: 600; white-space: normal; }
td.left, th.left { text-align: left; white-space: normal; }
tr.best td { font-weight: 600; background: #fdf6e3; }
.wide { overflow-x: auto; }
.note { color: #52606d; font-size: 13.5px; max-width: 60em; }
.banner { background: #fff3cd; border: 1px solid #e0c36a; padding: 0.6em 1em;
          border-radius: 4px; }
.banner.bad { background: #fde2e1; border-color: #d98b87; }
.key span { display: inline-block; width: 1em; height: 0.8em;
            margin: 0 0.3em 0 1em; }
</style>
</head>
<body>
)";

std::string Key(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string html = "<p class=\"key note\">";
  for (const auto& [color, name] : items) {
    absl::StrAppend(&html, "<span style=\"background:", color, "\"></span>",
                    name);
  }
  return html + "</p>\n";
}

std::string Banners(const Report& report) {
  std::string html;
  if (report.configuration.is_simulated) {
    html +=
        "<p class=\"banner\"><b>Simulated nodes.</b> Drafter and verifier run "
        "timing models in place of weights. Their times and their acceptance "
        "were set by hand (see the configuration); messages, coordinator and "
        "processes are real.</p>\n";
  }
  if (report.configuration.is_lossy) {
    html +=
        "<p class=\"banner\"><b>Lossy.</b> Drafts were accepted with a "
        "lenience below 1 (see the configuration): the text does not have the "
        "target's law.</p>\n";
  }
  if (report.num_failures() > 0) {
    absl::StrAppend(&html, "<p class=\"banner bad\"><b>", report.num_failures(),
                    " requests failed.</b> They count nowhere else; the table "
                    "of all cells has them.</p>\n");
  }
  const std::vector<std::string> cut_short = report.CutShort();
  if (!cut_short.empty()) {
    absl::StrAppend(&html,
                    "<p class=\"banner\"><b>Ended early for lack of "
                    "prompts</b>, as none is used twice in a cell: ",
                    EscapeHtml(absl::StrJoin(cut_short, "; ")),
                    ". Their figures are of the time that they took.</p>\n");
  }
  return html;
}

// A sentence a round-trip time.
std::string Findings(const Report& report) {
  std::string html = "<ul>\n";
  for (const Load& load : report.loads()) {
    for (const double rtt_ms : report.rtts_ms()) {
      const CellReport* const best = report.Best(rtt_ms, load);
      if (best == nullptr) continue;
      absl::StrAppendFormat(
          &html,
          "<li>RTT %g ms, %s: best K = <b>%s</b>%s%s (%.1f ms per token, %.0f "
          "tokens/s in all)</li>\n",
          rtt_ms, load.ToString(), best->cell().drafting().ToString(),
          best->speedup > 0
              ? absl::StrFormat(", <b>%.2f\xC3\x97</b> plain decoding inside "
                                "the verifier",
                                best->speedup)
              : "",
          best->network_speedup > 0
              ? absl::StrFormat(", %.2f\xC3\x97 plain decoding through the "
                                "same network",
                                best->network_speedup)
              : "",
          best->measured.token_ms.mean, best->measured.tokens_per_second);
    }
  }
  return html + "</ul>\n";
}

std::string HeatMaps(const Report& report, Ratio ratio) {
  std::string html;
  for (const Load& load : report.loads()) {
    absl::StrAppend(&html, "<h3>", EscapeHtml(load.ToString()), "</h3>\n",
                    HeatMapSvg(report, load, ratio));
  }
  return html;
}

std::string UsersSection(const Report& report) {
  const std::string chart = UsersSvg(report);
  if (chart.empty()) return "";
  std::string html =
      "<h2>Over users</h2>\n"
      "<p class=\"note\">Drafts cost the verifier rows. While a pass is "
      "dominated by what it costs whatever its rows, they are cheap; as users "
      "come, rows are what it costs, and those of refused drafts are lost: "
      "where a line of the right panel falls below 1, speculation stops "
      "paying.</p>\n<ul>\n";
  for (const std::string& sentence : WherePaying(report)) {
    absl::StrAppend(&html, "<li>", EscapeHtml(sentence), "</li>\n");
  }
  return html + "</ul>\n" + chart;
}

std::string PredictionSection(const Report& report) {
  const std::string chart = PredictionSvg(report);
  if (chart.empty()) return "";
  std::string html =
      "<h2>The formula beside the measurement</h2>\n"
      "<p class=\"note\">Speed-up over K, one user; each panel has its own "
      "scale. A round takes K draft steps + a pass over K + 1 rows + a round "
      "trip to each node + overhead; the speed-up is tokens per round "
      "\xC3\x97 the time of plain decoding per token / the time of the round. "
      "Tokens per round are as measured in the cell, round trips are the "
      "achieved ones. The overhead is what the rounds at the lowest round-trip "
      "time took beyond computing and round trips; ";
  html += report.configuration.is_simulated
              ? "the nodes' times are those that they were set to."
              : "the nodes' times are those that they reported there. So the "
                "lowest round-trip time fits by construction, and the others "
                "check the formula.";
  if (report.median_prediction_error) {
    absl::StrAppendFormat(
        &html,
        " Beyond that, formula and measurement differ by <b>%.1f %%</b> in the "
        "median cell.",
        100 * *report.median_prediction_error);
  }
  html +=
      " Cells of more users have no prediction, as their calls wait for each "
      "other, nor have those whose K is chosen for each round.";
  html += "</p>\n";
  if (const std::string broken = report.BrokenAssumption(); !broken.empty()) {
    absl::StrAppend(&html, "<p class=\"note\">", EscapeHtml(broken), "</p>\n");
  }
  const std::vector<std::string> large = report.LargeDifferences();
  if (!large.empty()) {
    absl::StrAppendFormat(&html,
                          "<p class=\"note\">By more than %.0f %% differ:</p>\n"
                          "<ul class=\"note\">\n",
                          100 * kLargeDifference);
    for (const std::string& text : large) {
      absl::StrAppend(&html, "<li>", EscapeHtml(text), "</li>\n");
    }
    html += "</ul>\n";
  }
  return html +
         Key({{"#2166ac", "measured: median, and range of the repeats"},
              {"#d9730d", "predicted (dashed)"}}) +
         chart;
}

std::string TimeLine(const Report& report) {
  return absl::StrCat(
      "<h2>Where one round's time goes</h2>\n"
      "<p class=\"note\">Mean round of plain decoding (K = 0) and of the best "
      "other K at each round-trip time, ",
      report.loads().front().ToString(),
      ". \"Network\" is the call less the node's own computing: the round "
      "trip, gRPC, and waiting for the node where others use it.</p>\n",
      Key({{"#2166ac", "drafting"},
           {"#d9730d", "verifying"},
           {"#b8c1cc", "network"},
           {"#92c5de", "waiting for drafts made ahead"},
           {"#4d9221", "coordinator and rest"}}),
      RoundTimeLineSvg(report));
}

std::string ThreeRoundsSection(const Report& report) {
  const std::string chart = ThreeRoundsSvg(report);
  if (chart.empty()) return "";
  return absl::StrCat(
      "<h2>What overlaps</h2>\n"
      "<p class=\"note\">Three rounds of the fastest cell that drafts in turn, "
      "and of the fastest one whose drafter works while the verifier does, at "
      "each round-trip time, ",
      report.loads().front().ToString(),
      ": mean times, and as many hits as there were.</p>\n",
      Key({{"#2166ac", "drafting in turn"},
           {"#4d9221", "drafting ahead, used"},
           {"#d98b87", "drafting ahead, in vain"},
           {"#d9730d", "verifying"},
           {"#b8c1cc", "on the way"}}),
      chart);
}

std::string SpreadCells(const Spread& spread) {
  return absl::StrFormat("<td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td>",
                         spread.p50, spread.p90, spread.p99, spread.mean);
}

std::string AheadCells(const CellReport& cell) {
  const AheadCounts& ahead = cell.measured.counts.ahead;
  const std::string hits =
      ahead.num_asked() > 0 ? absl::StrFormat("%.0f", 100 * ahead.hit_share())
                            : "";
  return absl::StrFormat("<td>%s</td><td>%.2f</td>", hits, cell.WastedShare());
}

std::string TableRow(const Report& report, const CellReport& cell) {
  const Measurement& m = cell.measured;
  std::string acceptance;
  for (size_t i = 0; i < m.offered.size(); ++i) {
    absl::StrAppendFormat(&acceptance, "%s%.0f", i > 0 ? " " : "",
                          100.0 * m.accepted[i] / m.offered[i]);
  }
  const bool is_best =
      report.Best(cell.cell().rtt_ms, cell.cell().load) == &cell;
  const std::string achieved = AchievedRtt(m);
  const std::string predicted = TimesText(cell.predicted_speedup().value_or(0));
  const std::string range =
      cell.speedup > 0
          ? absl::StrFormat("%.2f\xE2\x80\x93%.2f", cell.lowest_speedup,
                            cell.highest_speedup)
          : "";
  return absl::StrFormat(
             "<tr%s><td>%g</td><td>%s</td><td class=\"left\">%s</td><td>%s</td>"
             "<td>%s</td><td>%s</td><td>%s</td>"
             "<td>%s</td><td>%.2f</td><td>%s</td>",
             is_best ? " class=\"best\"" : "", cell.cell().rtt_ms, achieved,
             cell.cell().load.ToString(), cell.cell().drafting().ToString(),
             TimesText(cell.speedup), range, TimesText(cell.network_speedup),
             predicted, m.tokens_per_round, acceptance) +
         AheadCells(cell) + SpreadCells(m.first_token_ms) +
         SpreadCells(m.token_ms) + SpreadCells(m.request_ms) +
         absl::StrFormat(
             "<td>%.0f</td><td>%.0f</td><td>%.0f + %.0f</td>"
             "<td>%.2f + %.2f</td>"
             "<td>%.2f</td><td>%.2f</td><td>%.2f</td><td>%.2f</td>"
             "<td>%d</td><td>%d</td></tr>\n",
             m.tokens_per_second, m.tokens_per_second_per_user,
             m.drafter_bytes_per_token, m.verifier_bytes_per_token,
             m.drafter_messages_per_token, m.verifier_messages_per_token,
             m.split.draft_ms, m.split.network_ms(), m.split.verify_ms,
             m.split.rest_ms, m.num_requests, m.num_failures);
}

std::string Table(const Report& report) {
  std::string html =
      "<h2>All cells</h2>\n<p class=\"note\">Times in ms. The best K of each "
      "row of the heat map is marked. Time per token is (end - first token) / "
      "tokens that came after the first message, of each request. Acceptance: "
      "accepted / offered drafts at "
      "positions 1, 2, ... Hits: rounds whose drafts were made ahead, of those "
      "for which they were asked for. Per token: drafter + verifier.</p>\n<div "
      "class=\"wide\"><table>\n<tr>"
      "<th colspan=\"4\">cell</th><th colspan=\"4\">speed-up</th>"
      "<th colspan=\"4\">rounds</th><th colspan=\"4\">time to first token</th>"
      "<th colspan=\"4\">time per token</th><th colspan=\"4\">end to end</th>"
      "<th colspan=\"2\">tokens/s</th><th colspan=\"2\">per token</th>"
      "<th colspan=\"4\">one round, ms</th><th colspan=\"2\">requests</th>"
      "</tr>\n<tr><th>RTT</th><th>achieved</th><th>load</th><th>K</th>"
      "<th>plain in verifier</th><th>range</th><th>K = 0, same network</th>"
      "<th>predicted</th><th>tokens</th><th>acceptance %</th>"
      "<th>hits %</th><th>drafts wasted a token</th>";
  for (int i = 0; i < 3; ++i) {
    html += "<th>p50</th><th>p90</th><th>p99</th><th>mean</th>";
  }
  html +=
      "<th>in all</th><th>per user</th><th>bytes</th><th>messages</th>"
      "<th>draft</th><th>network</th><th>verify</th><th>rest</th>"
      "<th>done</th><th>failed</th></tr>\n";
  for (const CellReport& cell : report.cells) html += TableRow(report, cell);
  return html + "</table></div>\n";
}

std::string ConfigurationTable(const Configuration& configuration) {
  std::string html = "<h2>Configuration and machine</h2>\n<table>\n";
  for (const auto* pairs : {&configuration.binding, &configuration.notes}) {
    for (const auto& [name, value] : *pairs) {
      absl::StrAppend(&html, "<tr><th class=\"left\">", EscapeHtml(name),
                      "</th><td class=\"left\">", EscapeHtml(value),
                      "</td></tr>\n");
    }
  }
  return html + "</table>\n";
}

}  // namespace

std::string ToHtml(const Report& report) {
  std::string html = kHead;
  html +=
      "<h1>Speed-up over round-trip time and K</h1>\n"
      "<p class=\"note\">Speculative decoding with drafter and verifier behind "
      "a network: a small model drafts K tokens, the large one verifies them "
      "in one pass, and a coordinator keeps what the large model would have "
      "said itself. ";
  html += report.configuration.is_lossy
              ? "This"
              : "The output's law does not change; this";
  html += " page says what happens to the time.</p>\n";
  html += Banners(report);
  if (report.cells.empty()) return html + "<p>No results.</p></body></html>\n";
  html += "<h2>In short</h2>\n" + Findings(report);
  html +=
      "<h2>Speed-up over plain decoding inside the verifier</h2>\n"
      "<p class=\"note\">The honest baseline: the large model alone, in its "
      "own "
      "process, without network or RPC, measured in the same run. Of one "
      "user, and where requests come at random times, the time per token is "
      "compared; of several users the tokens a second of all, while they wait "
      "for first tokens too, with what the verifier alone gives one user. Blue "
      "is faster, red slower, white is 1.0; the outline is the best K and "
      "schedule of its row.</p>\n";
  html += HeatMaps(report, Ratio::kOverPlainInVerifier);
  html +=
      "<h2>Speed-up over K = 0 through the same network</h2>\n"
      "<p class=\"note\">What a client sees that would otherwise decode "
      "plainly through the same coordinator, network and load, compared as "
      "above. The outline is the same.</p>\n";
  html += HeatMaps(report, Ratio::kOverK0SameNetwork);
  html += UsersSection(report);
  html += PredictionSection(report);
  html += TimeLine(report);
  html += ThreeRoundsSection(report);
  html += Table(report);
  html += ConfigurationTable(report.configuration);
  return html + "</body>\n</html>\n";
}

}  // namespace outrider::bench
