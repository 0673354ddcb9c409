// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_FIGURES_H_
#define OUTRIDER_BENCH_MICRO_FIGURES_H_

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace outrider {

inline double Percentile(std::vector<double> values, double share) {
  const auto at =
      values.begin() +
      static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Times of one kind, and their line in a table.
struct Figures {
  std::vector<double> us = {};

  double p50() const { return Percentile(us, 0.5); }
  double p99() const { return Percentile(us, 0.99); }
};

inline void Print(const std::string& what, const Figures& figures) {
  std::printf("  %-50s %8.1f %8.1f\n", what.c_str(), figures.p50(),
              figures.p99());
}

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_FIGURES_H_
