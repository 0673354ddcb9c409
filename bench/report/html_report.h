// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_REPORT_HTML_REPORT_H_
#define OUTRIDER_BENCH_REPORT_HTML_REPORT_H_

#include <string>

#include "bench/report/report.h"

namespace outrider::bench {

// One page that needs nothing else: no script, no file, no network.
std::string ToHtml(const Report& report);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_REPORT_HTML_REPORT_H_
