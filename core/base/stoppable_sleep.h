// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_STOPPABLE_SLEEP_H_
#define OUTRIDER_CORE_BASE_STOPPABLE_SLEEP_H_

#include <chrono>
#include <stop_token>

namespace outrider {

// Sleeps so long, or until `stop` is requested; false if it was. It is what a
// std::jthread does between two turns of its work, so that whoever ends the
// thread does not wait for the next one.
bool SleepUnlessStopped(std::chrono::milliseconds duration,
                        const std::stop_token& stop);

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_STOPPABLE_SLEEP_H_
