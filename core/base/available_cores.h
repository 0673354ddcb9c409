// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_AVAILABLE_CORES_H_
#define OUTRIDER_CORE_BASE_AVAILABLE_CORES_H_

#include <string>

namespace outrider {

// The processor cores that this process may use, at least one: those of its
// affinity, and no more than its control group has time for, rounded down.
int AvailableCores();

// The same from a group's limits as Linux has them, "max 100000" or
// "150000 100000" (cpu.max): 0 where there is none.
int CoresOfQuota(const std::string& cpu_max);

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_AVAILABLE_CORES_H_
