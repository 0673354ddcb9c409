// SPDX-License-Identifier: Apache-2.0
#include "bench/report/svg_charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/report/svg_elements.h"

namespace outrider::bench {
namespace {

constexpr char kMeasured[] = "#2166ac";
constexpr char kPredicted[] = "#d9730d";

// White at 1, red below, blue above; full at a factor of 3.
struct Color {
  std::string fill;
  bool is_dark = false;
};
Color Diverging(double ratio) {
  constexpr std::array<double, 3> kSlow = {178, 24, 43};
  constexpr std::array<double, 3> kFast = {33, 102, 172};
  if (ratio <= 0) return {.fill = "#eeeeee"};
  const double value = std::clamp(std::log(ratio) / std::log(3.0), -1.0, 1.0);
  const std::array<double, 3>& end = value < 0 ? kSlow : kFast;
  const double share = std::abs(value);
  std::array<int, 3> mixed = {};
  for (size_t i = 0; i < mixed.size(); ++i) {
    mixed[i] = static_cast<int>(255 + (end[i] - 255) * share);
  }
  return {
      .fill = absl::StrFormat("#%02x%02x%02x", mixed[0], mixed[1], mixed[2]),
      .is_dark = share > 0.6};
}

std::string RttLabel(const CellReport& cell) {
  const std::string nominal = absl::StrFormat("%g ms", cell.cell().rtt_ms);
  return nominal;
}

std::string AchievedLabel(const CellReport& cell) {
  const auto& achieved = cell.measured.verifier_rtt_ms;
  if (!achieved || cell.cell().rtt_ms == 0) return "no emulated network";
  return absl::StrFormat("achieved %.2f", *achieved);
}

std::string CellTitle(const CellReport& cell) {
  const Measurement& m = cell.measured;
  std::string title = absl::StrFormat(
      "RTT %g ms, K = %s, %s: ", cell.cell().rtt_ms,
      cell.cell().drafting().ToString(), cell.cell().load.ToString());
  if (cell.speedup > 0) {
    absl::StrAppendFormat(
        &title,
        "%.2f times plain decoding in the verifier (%.2f to %.2f over %d "
        "repeats), ",
        cell.speedup, cell.lowest_speedup, cell.highest_speedup,
        cell.num_repeats);
  }
  if (cell.network_speedup > 0) {
    absl::StrAppendFormat(&title, "%.2f times K = 0 through the same network; ",
                          cell.network_speedup);
  }
  absl::StrAppendFormat(&title,
                        "%.2f ms per token, %.2f tokens per round, %d requests",
                        m.token_ms.mean, m.tokens_per_round, m.num_requests);
  return title;
}

double Value(const CellReport& cell, Ratio ratio) {
  return ratio == Ratio::kOverPlainInVerifier ? cell.speedup
                                              : cell.network_speedup;
}

// One panel of the prediction chart.
class Panel {
 public:
  Panel(const Report& report, double rtt_ms, double left, double top)
      : report_(report), rtt_ms_(rtt_ms), left_(left), bottom_(top + kHeight) {
    for (const CellReport& cell : report.cells) {
      if (cell.cell().load != Load{} || cell.cell().rtt_ms != rtt_ms) continue;
      highest_ = std::max({highest_, cell.highest_speedup,
                           cell.predicted_speedup().value_or(0)});
    }
  }

  static constexpr double kWidth = 190;
  static constexpr double kHeight = 170;

  std::string Draw() const {
    std::string svg = SvgText({.x = left_ + kWidth / 2,
                               .y = bottom_ - kHeight - 8,
                               .css_class = "strong"},
                              absl::StrFormat("RTT %g ms", rtt_ms_));
    const double step = NiceStep(highest_, 4);
    for (double tick = 0; tick <= highest_ * 1.05; tick += step) {
      svg += SvgLine(left_, Y(tick), left_ + kWidth, Y(tick), kGrid);
      svg += SvgText({.x = left_ - 6,
                      .y = Y(tick) + 4,
                      .anchor = "end",
                      .css_class = "small"},
                     absl::StrFormat("%g", tick));
    }
    if (highest_ >= 1) {
      svg += SvgLine(left_, Y(1), left_ + kWidth, Y(1), kInk,
                     "stroke-dasharray=\"2 3\"");
    }
    std::string points;
    std::string marks;
    const std::vector<Drafting> ways = report_.draftings();
    for (size_t i = 0; i < ways.size(); ++i) {
      const CellReport* const cell = report_.Find({.rtt_ms = rtt_ms_,
                                                   .load = {},
                                                   .schedule = ways[i].schedule,
                                                   .k = ways[i].k});
      if (cell == nullptr) continue;
      const double x = left_ + kWidth * (static_cast<double>(i) + 0.5) /
                                   static_cast<double>(ways.size());
      svg += SvgText({.x = x, .y = bottom_ + 16, .css_class = "small"},
                     ways[i].ToString());
      marks += Mark(*cell, x);
      if (cell->predicted_speedup()) {
        absl::StrAppendFormat(&points, "%.1f,%.1f ", x,
                              Y(*cell->predicted_speedup()));
      }
    }
    svg += absl::StrFormat(
        "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" "
        "stroke-width=\"2\" stroke-dasharray=\"6 4\"/>\n",
        points, kPredicted);
    return svg + marks;
  }

 private:
  double Y(double speedup) const {
    return bottom_ - kHeight * speedup / (highest_ * 1.08);
  }

  std::string Mark(const CellReport& cell, double x) const {
    std::string svg;
    if (cell.predicted_speedup()) {
      svg += absl::StrFormat(
          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#fff\" "
          "stroke=\"%s\" stroke-width=\"2\"><title>predicted %.2f"
          "</title></circle>\n",
          x, Y(*cell.predicted_speedup()), kPredicted,
          *cell.predicted_speedup());
    }
    svg += SvgLine(x, Y(cell.lowest_speedup), x, Y(cell.highest_speedup),
                   kMeasured, "stroke-width=\"2\"");
    svg += absl::StrFormat(
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" fill=\"%s\"><title>%s"
        "</title></circle>\n",
        x, Y(cell.speedup), kMeasured, EscapeHtml(CellTitle(cell)));
    return svg;
  }

  const Report& report_;
  const double rtt_ms_;
  const double left_;
  const double bottom_;
  double highest_ = 0.1;
};

struct Segment {
  const char* name;
  const char* color;
  double ms;
};

std::vector<Segment> Segments(const RoundSplit& split) {
  static constexpr char kNetwork[] = "#b8c1cc";  // outlives the segments
  const double to_drafter = split.drafter_network_ms / 2;
  const double to_verifier = split.verifier_network_ms / 2;
  return {{"network to the drafter", kNetwork, to_drafter},
          {"drafting", "#2166ac", split.draft_ms},
          {"network from the drafter", kNetwork, to_drafter},
          {"network to the verifier", kNetwork, to_verifier},
          {"verifying", "#d9730d", split.verify_ms},
          {"network from the verifier", kNetwork, to_verifier},
          {"waiting for drafts made ahead", "#92c5de", split.wait_ms},
          {"coordinator", "#4d9221", split.rest_ms}};
}

// The cells of the time line: K = 0 and the best other K, at each round trip.
std::vector<const CellReport*> TimeLineCells(const Report& report) {
  std::vector<const CellReport*> shown;
  const Load load = report.loads().front();
  for (const double rtt_ms : report.rtts_ms()) {
    const CellReport* best = nullptr;
    for (const CellReport& cell : report.cells) {
      if (cell.cell().rtt_ms != rtt_ms || cell.cell().load != load ||
          cell.measured.num_rounds == 0) {
        continue;
      }
      if (cell.cell().k == 0) {
        shown.push_back(&cell);
      } else if (best == nullptr || cell.rank() > best->rank()) {
        best = &cell;
      }
    }
    if (best != nullptr) shown.push_back(best);
  }
  return shown;
}

}  // namespace

std::string HeatMapSvg(const Report& report, const Load& load, Ratio ratio) {
  constexpr double kLeft = 150;
  constexpr double kTop = 44;
  constexpr double kWidth = 104;
  constexpr double kHeight = 48;
  const std::vector<Drafting> ways = report.draftings();
  const std::vector<double> rtts = report.rtts_ms();
  std::string svg =
      OpenSvg(kLeft + kWidth * static_cast<double>(ways.size()) + 6,
              kTop + kHeight * static_cast<double>(rtts.size()) + 8,
              absl::StrCat("heat map, ", load.ToString()));
  svg +=
      SvgText({.x = kLeft - 12, .y = 16, .anchor = "end", .css_class = "small"},
              "round-trip time \xE2\x86\x93");
  svg += SvgText({.x = kLeft, .y = 16, .anchor = "start", .css_class = "small"},
                 "K: draft tokens a round \xE2\x86\x92");
  std::string outlines;
  for (size_t row = 0; row < rtts.size(); ++row) {
    const double y = kTop + kHeight * static_cast<double>(row);
    const CellReport* const best = report.Best(rtts[row], load);
    for (size_t column = 0; column < ways.size(); ++column) {
      const double x = kLeft + kWidth * static_cast<double>(column);
      if (row == 0) {
        svg +=
            SvgText({.x = x + kWidth / 2, .y = kTop - 8, .css_class = "strong"},
                    ways[column].ToString());
      }
      const CellReport* const cell =
          report.Find({.rtt_ms = rtts[row],
                       .load = load,
                       .schedule = ways[column].schedule,
                       .k = ways[column].k});
      const Box box = {x + 1, y + 1, kWidth - 2, kHeight - 2};
      if (cell == nullptr || Value(*cell, ratio) <= 0) {
        svg += SvgRect(box, "#eeeeee",
                       cell == nullptr ? "not measured"
                                       : "measured, but with nothing to be "
                                         "compared with");
        continue;
      }
      const Color color = Diverging(Value(*cell, ratio));
      const char* const ink = color.is_dark ? "#ffffff" : kInk;
      svg += SvgRect(box, color.fill, CellTitle(*cell));
      svg += SvgText(
          {.x = x + kWidth / 2, .y = y + 22, .css_class = "value", .fill = ink},
          absl::StrFormat("%.2f\xC3\x97", Value(*cell, ratio)));
      svg += SvgText(
          {.x = x + kWidth / 2, .y = y + 38, .css_class = "small", .fill = ink},
          absl::StrFormat("%.2f ms/token", cell->measured.token_ms.mean));
      if (cell == best) {
        outlines += SvgRect({x + 2, y + 2, kWidth - 4, kHeight - 4}, "none", "",
                            "stroke=\"#111\" stroke-width=\"3\" rx=\"3\" "
                            "pointer-events=\"none\"");
      }
    }
    if (best == nullptr) continue;
    svg += SvgText(
        {.x = kLeft - 12, .y = y + 22, .anchor = "end", .css_class = "strong"},
        RttLabel(*best));
    svg += SvgText(
        {.x = kLeft - 12, .y = y + 38, .anchor = "end", .css_class = "small"},
        AchievedLabel(*best));
  }
  return svg + outlines + "</svg>\n";
}

std::string PredictionSvg(const Report& report) {
  constexpr double kGap = 46;
  constexpr int kColumns = 4;
  const std::vector<double> rtts = report.rtts_ms();
  const std::vector<Load> loads = report.loads();
  if (std::find(loads.begin(), loads.end(), Load{}) == loads.end()) return "";
  const int num_rows =
      (static_cast<int>(rtts.size()) + kColumns - 1) / kColumns;
  const int num_columns = std::min(kColumns, static_cast<int>(rtts.size()));
  constexpr double kRow = Panel::kHeight + 66;
  std::string svg = OpenSvg(num_columns * (Panel::kWidth + kGap) + 8,
                            num_rows * kRow, "prediction and measurement");
  for (int i = 0; i < static_cast<int>(rtts.size()); ++i) {
    const double left = 40 + (i % kColumns) * (Panel::kWidth + kGap);
    const double top = 28 + kRow * (i / kColumns);
    svg += Panel(report, rtts[i], left, top).Draw();
    svg += SvgText({.x = left + Panel::kWidth / 2,
                    .y = top + Panel::kHeight + 32,
                    .css_class = "small"},
                   "K");
  }
  return svg + "</svg>\n";
}

std::string RoundTimeLineSvg(const Report& report) {
  constexpr double kLeft = 250;
  constexpr double kWidth = 640;
  constexpr double kBar = 22;
  constexpr double kRow = 32;
  const std::vector<const CellReport*> shown = TimeLineCells(report);
  if (shown.empty()) return "";
  double longest = 1e-3;
  for (const CellReport* cell : shown) {
    longest = std::max(longest, cell->measured.split.round_ms());
  }
  const double height = kRow * static_cast<double>(shown.size());
  std::string svg = OpenSvg(kLeft + kWidth + 90, height + 44, "one round");
  const double step = NiceStep(longest, 6);
  for (double tick = 0; tick <= longest * 1.001; tick += step) {
    const double x = kLeft + kWidth * tick / longest;
    svg += SvgLine(x, 4, x, height + 6, kGrid);
    svg += SvgText({.x = x, .y = height + 22, .css_class = "small"},
                   absl::StrFormat("%g ms", tick));
  }
  double y = 6;
  for (const CellReport* cell : shown) {
    const Measurement& m = cell->measured;
    svg += SvgText(
        {.x = kLeft - 10, .y = y + 16, .anchor = "end", .css_class = "small"},
        absl::StrFormat("RTT %g ms, K = %s: %.2f tokens", cell->cell().rtt_ms,
                        cell->cell().drafting().ToString(),
                        m.tokens_per_round));
    double x = kLeft;
    for (const Segment& segment : Segments(m.split)) {
      const double width = kWidth * segment.ms / longest;
      if (width <= 0) continue;
      svg += SvgRect({x, y, width, kBar}, segment.color,
                     absl::StrFormat("%s: %.2f ms", segment.name, segment.ms));
      x += width;
    }
    svg += SvgText(
        {.x = x + 6, .y = y + 16, .anchor = "start", .css_class = "small"},
        absl::StrFormat("%.1f ms", m.split.round_ms()));
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace outrider::bench
