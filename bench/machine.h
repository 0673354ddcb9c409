// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MACHINE_H_
#define OUTRIDER_BENCH_MACHINE_H_

#include <string>
#include <utility>
#include <vector>

namespace outrider::bench {

// Machine, system, date (UTC) and this program's version and commit, as far as
// they can be found; names and values for a report. `programs` is a folder
// inside the repository.
std::vector<std::pair<std::string, std::string>> DescribeMachine(
    const std::string& programs);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_MACHINE_H_
