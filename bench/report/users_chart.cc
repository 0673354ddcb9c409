// SPDX-License-Identifier: Apache-2.0
#include "bench/report/users_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/report/svg_elements.h"

namespace outrider::bench {
namespace {

constexpr size_t kFewestLoads = 3;

const char* ColorOf(size_t place) {
  static constexpr std::array<const char*, 7> kColors = {
      "#1f2933", "#2166ac", "#d9730d", "#4d9221",
      "#8e44ad", "#b2182b", "#00838f"};
  return kColors[place % kColors.size()];
}

const CellReport* Find(const Report& report, double rtt_ms, int users,
                       const Drafting& way) {
  const CellReport* const cell = report.Find({.rtt_ms = rtt_ms,
                                              .load = {.concurrency = users},
                                              .schedule = way.schedule,
                                              .k = way.k});
  return cell != nullptr && cell->measured.token_ms.mean > 0 ? cell : nullptr;
}

// One panel: a value over the number of users.
struct Facet {
  const char* title;
  std::function<double(const CellReport&)> value;
  bool is_logarithmic = false;
  bool has_line_at_one = false;

  static constexpr double kWidth = 290;
  static constexpr double kHeight = 230;
};

class DrawnPanel {
 public:
  DrawnPanel(const Report& report, double rtt_ms, const Facet& panel,
             double left, double top)
      : report_(report),
        rtt_ms_(rtt_ms),
        panel_(panel),
        users_(UsersOf(report)),
        left_(left),
        bottom_(top + Facet::kHeight) {
    for (const CellReport& cell : report.cells) {
      const double value = panel.value(cell);
      if (cell.cell().rtt_ms != rtt_ms || value <= 0) continue;
      lowest_ = std::min(lowest_, value);
      highest_ = std::max(highest_, value);
    }
    if (panel.has_line_at_one || highest_ < lowest_) {
      highest_ = std::max(highest_, 1.0);
    }
    lowest_ = std::min(lowest_, highest_);
    // One value alone has no scale.
    if (lowest_ == highest_) lowest_ /= 2;
    if (!panel.is_logarithmic) lowest_ = 0;
  }

  std::string Draw() const {
    std::string svg = SvgText({.x = left_ + Facet::kWidth / 2,
                               .y = bottom_ - Facet::kHeight - 10,
                               .css_class = "strong"},
                              panel_.title);
    for (const double tick : Ticks()) {
      svg += SvgLine(left_, Y(tick), left_ + Facet::kWidth, Y(tick), kGrid);
      svg += SvgText({.x = left_ - 6,
                      .y = Y(tick) + 4,
                      .anchor = "end",
                      .css_class = "small"},
                     absl::StrFormat("%g", tick));
    }
    if (panel_.has_line_at_one) {
      svg += SvgLine(left_, Y(1), left_ + Facet::kWidth, Y(1), kInk,
                     "stroke-dasharray=\"2 3\"");
    }
    for (const int users : users_) {
      svg += SvgText({.x = X(users), .y = bottom_ + 16, .css_class = "small"},
                     absl::StrCat(users));
    }
    svg += SvgText({.x = left_ + Facet::kWidth / 2,
                    .y = bottom_ + 32,
                    .css_class = "small"},
                   "users");
    const std::vector<Drafting> ways = report_.draftings();
    for (size_t i = 0; i < ways.size(); ++i)
      svg += DrawWay(ways[i], ColorOf(i));
    return svg;
  }

 private:
  std::string DrawWay(const Drafting& way, const char* color) const {
    std::string points;
    std::string marks;
    for (const int users : users_) {
      const CellReport* const cell = Find(report_, rtt_ms_, users, way);
      if (cell == nullptr) continue;
      const double value = panel_.value(*cell);
      if (value <= 0) continue;
      absl::StrAppendFormat(&points, "%.1f,%.1f ", X(users), Y(value));
      absl::StrAppendFormat(
          &marks,
          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"><title>K = "
          "%s, %d users: %.4g</title></circle>\n",
          X(users), Y(value), color, way.ToString(), users, value);
    }
    return absl::StrFormat(
               "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" "
               "stroke-width=\"2\"/>\n",
               points, color) +
           marks;
  }

  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    if (!panel_.is_logarithmic) {
      const double step = NiceStep(highest_, 5);
      for (double tick = 0; tick <= highest_ * 1.05; tick += step) {
        ticks.push_back(tick);
      }
      return ticks;
    }
    for (double power = 1e-3; power < highest_; power *= 10) {
      for (const double tick : {power, 2 * power, 5 * power}) {
        if (tick >= lowest_ && tick <= highest_) ticks.push_back(tick);
      }
    }
    return ticks;
  }

  double X(int users) const {
    const double first = std::log(users_.front());
    const double share =
        (std::log(users) - first) / (std::log(users_.back()) - first);
    return left_ + Facet::kWidth * (0.04 + 0.92 * share);
  }

  double Y(double value) const {
    const double share =
        panel_.is_logarithmic
            ? std::log(value / lowest_) / std::log(highest_ / lowest_)
            : value / highest_;
    return bottom_ - Facet::kHeight * (0.02 + 0.92 * share);
  }

  const Report& report_;
  const double rtt_ms_;
  const Facet& panel_;
  const std::vector<int> users_;
  const double left_;
  const double bottom_;
  double lowest_ = 1e9;
  double highest_ = 1e-9;
};

}  // namespace

std::vector<int> UsersOf(const Report& report) {
  std::vector<int> users;
  for (const Load& load : report.loads()) {
    if (!load.is_open()) users.push_back(load.concurrency);
  }
  std::sort(users.begin(), users.end());
  if (users.size() < kFewestLoads) users.clear();
  return users;
}

std::optional<double> PaysUpTo(const Report& report, double rtt_ms,
                               const Drafting& way) {
  double paying_users = 0;
  double gain = 0;  // log of the speed-up there
  for (const int users : UsersOf(report)) {
    const CellReport* const cell = Find(report, rtt_ms, users, way);
    if (cell == nullptr || cell->network_speedup <= 0) continue;
    const double next_gain = std::log(cell->network_speedup);
    if (next_gain > 0) {
      paying_users = users;
      gain = next_gain;
    } else if (paying_users > 0) {
      const double share = gain / (gain - next_gain);
      return paying_users * std::pow(users / paying_users, share);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<std::string> WherePaying(const Report& report) {
  std::vector<std::string> sentences;
  for (const double rtt_ms : report.rtts_ms()) {
    for (const Drafting& way : report.draftings()) {
      if (way.k == 0) continue;
      if (const auto users = PaysUpTo(report, rtt_ms, way)) {
        sentences.push_back(
            absl::StrFormat("RTT %g ms: K = %s pays up to about %.0f users",
                            rtt_ms, way.ToString(), *users));
      }
    }
  }
  return sentences;
}

std::string UsersSvg(const Report& report) {
  constexpr double kGap = 56;
  constexpr double kRow = Facet::kHeight + 84;
  if (UsersOf(report).empty()) return "";
  const std::array<Facet, 3> panels = {{
      {.title = "tokens/s of all users",
       .value = [](const auto& c) { return c.measured.tokens_per_second; }},
      {.title = "time per token, ms (logarithmic)",
       .value = [](const auto& c) { return c.measured.token_ms.mean; },
       .is_logarithmic = true},
      {.title = "speed-up over K = 0",
       .value = [](const auto& c) { return c.network_speedup; },
       .has_line_at_one = true},
  }};
  const std::vector<double> rtts = report.rtts_ms();
  std::string svg = OpenSvg(panels.size() * (Facet::kWidth + kGap) + 8,
                            kRow * static_cast<double>(rtts.size()) + 24,
                            "throughput and time per token over users");
  const std::vector<Drafting> ways = report.draftings();
  for (size_t i = 0; i < ways.size(); ++i) {
    const double x = kGap + 80 * static_cast<double>(i);
    svg += SvgRect({x, 6, 18, 10}, ColorOf(i));
    svg += SvgText({.x = x + 24, .y = 16, .anchor = "start"},
                   absl::StrCat("K = ", ways[i].ToString()));
  }
  for (size_t row = 0; row < rtts.size(); ++row) {
    const double top = 52 + kRow * static_cast<double>(row);
    if (rtts.size() > 1) {
      svg += SvgText({.x = 8, .y = top - 10, .anchor = "start"},
                     absl::StrFormat("RTT %g ms", rtts[row]));
    }
    for (size_t i = 0; i < panels.size(); ++i) {
      const double left =
          kGap + (Facet::kWidth + kGap) * static_cast<double>(i);
      svg += DrawnPanel(report, rtts[row], panels[i], left, top).Draw();
    }
  }
  return svg + "</svg>\n";
}

namespace {

// " 211 (38.0 ms, 1.08)".
std::string ThroughputText(const CellReport& cell) {
  const std::string times = TimesText(cell.network_speedup);
  return absl::StrFormat(" %.0f (%.1f ms%s%s)", cell.measured.tokens_per_second,
                         cell.measured.token_ms.mean, times.empty() ? "" : ", ",
                         times);
}

}  // namespace

std::string UsersTable(const Report& report) {
  const std::vector<int> all_users = UsersOf(report);
  std::string text;
  if (all_users.empty()) return text;
  for (const double rtt_ms : report.rtts_ms()) {
    absl::StrAppendFormat(
        &text,
        "\n## Over users, RTT %g ms\n\nTokens/s of all users, in brackets ms "
        "per token and the speed-up over K = 0 with as many users, of one "
        "user by time per token and of several by tokens/s.\n\n| users "
        "|",
        rtt_ms);
    std::string line = "|---|";
    for (const Drafting& way : report.draftings()) {
      absl::StrAppend(&text, " K = ", way.ToString(), " |");
      line += "---|";
    }
    absl::StrAppend(&text, "\n", line, "\n");
    for (const int users : all_users) {
      absl::StrAppend(&text, "| ", users, " |");
      for (const Drafting& way : report.draftings()) {
        const CellReport* const cell = Find(report, rtt_ms, users, way);
        if (cell != nullptr) text += ThroughputText(*cell);
        text += " |";
      }
      text += "\n";
    }
  }
  for (const std::string& sentence : WherePaying(report)) {
    absl::StrAppend(&text, "\n", sentence, ".\n");
  }
  return text;
}

}  // namespace outrider::bench
