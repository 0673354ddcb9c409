// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_REPORT_USERS_CHART_H_
#define OUTRIDER_BENCH_REPORT_USERS_CHART_H_

#include <optional>
#include <string>
#include <vector>

#include "bench/report/report.h"

namespace outrider::bench {

// What becomes of speculation as users come: of reports with at least three
// numbers of users.

// The numbers of users that were measured; empty where they are fewer.
std::vector<int> UsersOf(const Report& report);

// The number of users up to which a token takes less time than with K = 0 and
// as many users: between two measured numbers on a straight line over their
// logarithms. Nothing where it always pays, or never.
std::optional<double> PaysUpTo(const Report& report, double rtt_ms,
                               const Drafting& way);

// "RTT 0 ms: K = 1 pays up to about 41 users": a sentence for each K > 0.
std::vector<std::string> WherePaying(const Report& report);

// Three panels for each round-trip time, users across, a line for each K:
// tokens/s of all users, time per token, speed-up over K = 0.
std::string UsersSvg(const Report& report);

// A table in Markdown: for each K and number of users tokens/s of all, time per
// token and speed-up over K = 0.
std::string UsersTable(const Report& report);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_REPORT_USERS_CHART_H_
