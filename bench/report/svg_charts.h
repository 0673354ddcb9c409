// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_REPORT_SVG_CHARTS_H_
#define OUTRIDER_BENCH_REPORT_SVG_CHARTS_H_

#include <string>

#include "bench/report/report.h"

namespace outrider::bench {

// Each an <svg> element that needs nothing else; text uses the page's classes.

enum class Ratio { kOverPlainInVerifier, kOverK0SameNetwork };

// Round-trip time down, K across: a ratio as text and colour, white at 1.0; the
// best K and schedule of a row are outlined.
std::string HeatMapSvg(const Report& report, const Load& load, Ratio ratio);

// A panel per round-trip time: K across, speed-up up; measured with the range
// of its repeats, and predicted. All is of one user at a time; empty where
// there was no such load.
std::string PredictionSvg(const Report& report);

// Where the time of one round goes, to scale: a bar per round-trip time with
// its best K above 0, of the first load.
std::string RoundTimeLineSvg(const Report& report);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_REPORT_SVG_CHARTS_H_
