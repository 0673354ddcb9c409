// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_REPORT_ROUNDS_CHART_H_
#define OUTRIDER_BENCH_REPORT_ROUNDS_CHART_H_

#include <string>
#include <vector>

#include "bench/report/report.h"

namespace outrider::bench {

// Three rounds of a cell, to see what goes on at the same time: drawn from the
// means of its rounds, with as many hits as it had.

// What one of the nodes, or the network to it, does for a time.
struct Activity {
  enum class Kind {
    kOnTheWay,
    kDraftsInTurn,
    kDraftsAhead,   // and the next round uses it
    kDraftsInVain,  // ahead, for verdicts that did not come
    kVerifies,
  };

  Kind kind = Kind::kOnTheWay;
  int round = 0;  // from 0
  double begin_ms = 0;
  double end_ms = 0;
  bool is_of_verifier = false;  // else of the drafter
};

// What is done when in a cell that drafts.
std::vector<Activity> ThreeRounds(const CellReport& cell);

// Shows, for each round trip, the fastest cell of the first load that drafts in
// turn, and the fastest one that drafts ahead; empty where nobody drafts ahead.
std::string ThreeRoundsSvg(const Report& report);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_REPORT_ROUNDS_CHART_H_
