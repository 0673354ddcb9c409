// SPDX-License-Identifier: Apache-2.0
#include "bench/report/rounds_chart.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "bench/report/svg_elements.h"

namespace outrider::bench {
namespace {

using Kind = Activity::Kind;

constexpr int kNumRounds = 3;

// A cell's mean times.
struct Times {
  int k = 0;
  double step_ms = 0;        // of a draft
  double to_drafter_ms = 0;  // and back
  double verify_ms = 0;
  double to_verifier_ms = 0;  // and back
  double wait_ms = 0;         // of a hit
  double rest_ms = 0;
};

Times TimesOf(const Measurement& m) {
  const double in_turn = m.in_turn();
  const double hits = m.asked_ahead() * m.counts.ahead.hit_share();
  Times times = {.k = std::max(1, static_cast<int>(m.offered.size())),
                 .verify_ms = m.split.verify_ms,
                 .to_verifier_ms = m.split.verifier_network_ms,
                 .wait_ms = hits > 0 ? m.split.wait_ms / hits : 0,
                 .rest_ms = m.split.rest_ms};
  times.step_ms = in_turn > 0 && m.split.draft_ms > 0
                      ? m.split.draft_ms / (in_turn * times.k)
                      : m.model_draft_step_ms;
  times.to_drafter_ms = m.drafter_rtt_ms.value_or(
      in_turn > 0 ? m.split.drafter_network_ms / in_turn : 0);
  return times;
}

// How many of three rounds had no drafts when they began.
int NumInTurn(const Measurement& m) {
  return static_cast<int>(std::lround(kNumRounds * m.in_turn()));
}

class Drawing {
 public:
  explicit Drawing(const Measurement& m)
      : times_(TimesOf(m)),
        is_ahead_(m.counts.ahead.num_asked() > 0),
        num_in_turn_(NumInTurn(m)) {}

  std::vector<Activity> Rounds() {
    for (int i = 0; i < kNumRounds; ++i) AddRound(i);
    return std::move(activities_);
  }

 private:
  // The first has its drafts where it can be.
  bool IsInTurn(int round) const {
    return !is_ahead_ || (round + kNumRounds - 1) % kNumRounds < num_in_turn_;
  }
  void AddRound(int i) {
    round_ = i;
    if (IsInTurn(i)) now_ = AddDrafter(now_, Kind::kDraftsInTurn, times_.k);
    const double asked = now_;
    const double way = times_.to_verifier_ms / 2;
    now_ = Add(now_, way, Kind::kOnTheWay, /*is_of_verifier=*/true);
    now_ = Add(now_, times_.verify_ms, Kind::kVerifies, true);
    now_ = Add(now_, way, Kind::kOnTheWay, true);
    if (is_ahead_) AddAhead(asked, IsInTurn(i + 1));
    now_ += times_.rest_ms;
  }
  // They take from when they are on their way to after the verdict, or before.
  void AddAhead(double asked, bool is_in_vain) {
    const Kind kind = is_in_vain ? Kind::kDraftsInVain : Kind::kDraftsAhead;
    const double steps =
        times_.wait_ms > 0
            ? (now_ + times_.wait_ms - asked - times_.to_drafter_ms) /
                  times_.step_ms
            : times_.k + 1;
    const double back = AddDrafter(asked, kind, std::max(0.0, steps));
    now_ = std::max(now_, back);
  }
  double AddDrafter(double begin, Kind kind, double num_steps) {
    const double way = times_.to_drafter_ms / 2;
    const double there = Add(begin, way, Kind::kOnTheWay, false);
    const double done = Add(there, num_steps * times_.step_ms, kind, false);
    return Add(done, way, Kind::kOnTheWay, false);
  }
  double Add(double begin, double ms, Kind kind, bool is_of_verifier) {
    if (ms > 0) {
      activities_.push_back({.kind = kind,
                             .round = round_,
                             .begin_ms = begin,
                             .end_ms = begin + ms,
                             .is_of_verifier = is_of_verifier});
    }
    return begin + ms;
  }

  const Times times_;
  const bool is_ahead_;
  const int num_in_turn_;
  std::vector<Activity> activities_;
  int round_ = 0;
  double now_ = 0;
};

struct Look {
  const char* name;
  const char* color;
};
Look LookOf(Kind kind) {
  switch (kind) {
    case Kind::kOnTheWay:
      return {"on the way", "#b8c1cc"};
    case Kind::kDraftsInTurn:
      return {"drafting in turn", "#2166ac"};
    case Kind::kDraftsAhead:
      return {"drafting ahead, used", "#4d9221"};
    case Kind::kDraftsInVain:
      return {"drafting ahead, in vain", "#d98b87"};
    case Kind::kVerifies:
      return {"verifying", "#d9730d"};
  }
  return {"", kGrid};
}

const CellReport* Fastest(const Report& report, double rtt_ms, bool is_ahead) {
  const CellReport* fastest = nullptr;
  const Load load = report.loads().front();
  for (const CellReport& cell : report.cells) {
    const bool is_one =
        cell.cell().rtt_ms == rtt_ms && cell.cell().load == load &&
        cell.cell().k > 0 && cell.measured.num_rounds > 0 &&
        (cell.measured.counts.ahead.num_asked() > 0) == is_ahead;
    if (is_one && (fastest == nullptr || cell.rank() > fastest->rank())) {
      fastest = &cell;
    }
  }
  return fastest;
}

double EndOf(const std::vector<Activity>& activities) {
  double end = 0;
  for (const Activity& one : activities) end = std::max(end, one.end_ms);
  return end;
}

constexpr double kRoundsLeft = 250;
constexpr double kRoundsWidth = 640;
constexpr double kRoundsBar = 14;
constexpr double kRoundsLane = 18;
constexpr double kRoundsRow = 2 * kRoundsLane + 14;

// Two lanes from `top` down.
std::string Row(const CellReport& cell, double top, double pixels_per_ms) {
  const std::vector<Activity> activities = ThreeRounds(cell);
  std::string svg =
      SvgText({.x = kRoundsLeft - 70,
               .y = top + kRoundsLane + 2,
               .anchor = "end",
               .css_class = "small"},
              absl::StrFormat("RTT %g ms, K = %s", cell.cell().rtt_ms,
                              cell.cell().drafting().ToString()));
  for (const bool is_of_verifier : {false, true}) {
    svg += SvgText({.x = kRoundsLeft - 8,
                    .y = top + (is_of_verifier ? kRoundsLane : 0) + 11,
                    .anchor = "end",
                    .css_class = "small"},
                   is_of_verifier ? "verifier" : "drafter");
  }
  for (const Activity& one : activities) {
    const Look look = LookOf(one.kind);
    const bool is_thin = one.kind == Kind::kOnTheWay;
    const double y = top + (one.is_of_verifier ? kRoundsLane : 0);
    svg += SvgRect({.x = kRoundsLeft + one.begin_ms * pixels_per_ms,
                    .y = is_thin ? y + kRoundsBar / 2 - 1 : y,
                    .width = (one.end_ms - one.begin_ms) * pixels_per_ms,
                    .height = is_thin ? 2 : kRoundsBar},
                   look.color,
                   absl::StrFormat("round %d: %s, %.2f ms", one.round + 1,
                                   look.name, one.end_ms - one.begin_ms));
  }
  const double end = EndOf(activities);
  return svg + SvgText({.x = kRoundsLeft + end * pixels_per_ms + 6,
                        .y = top + kRoundsLane + 2,
                        .anchor = "start",
                        .css_class = "small"},
                       absl::StrFormat("%.1f ms", end));
}

}  // namespace

std::vector<Activity> ThreeRounds(const CellReport& cell) {
  return Drawing(cell.measured).Rounds();
}

std::string ThreeRoundsSvg(const Report& report) {
  if (!report.HasAhead()) return "";
  std::vector<const CellReport*> shown;
  double longest = 1e-3;
  for (const double rtt_ms : report.rtts_ms()) {
    for (const bool is_ahead : {false, true}) {
      const CellReport* const cell = Fastest(report, rtt_ms, is_ahead);
      if (cell == nullptr) continue;
      shown.push_back(cell);
      longest = std::max(longest, EndOf(ThreeRounds(*cell)));
    }
  }
  std::string svg = OpenSvg(kRoundsLeft + kRoundsWidth + 90,
                            kRoundsRow * static_cast<double>(shown.size()) + 8,
                            "three rounds");
  double top = 6;
  for (const CellReport* const cell : shown) {
    svg += Row(*cell, top, kRoundsWidth / longest);
    top += kRoundsRow;
  }
  return svg + "</svg>\n";
}

}  // namespace outrider::bench
