// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CHOOSE_LEVEL_H_
#define OUTRIDER_CORE_KERNELS_CHOOSE_LEVEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/kernels/dispatch.h"

namespace outrider::kernels {

// The level whose linear layers are fastest on this CPU, by a measurement of
// some 20 ms, made once in a process: not every CPU is quick at all that it can
// do (on some Xeons vdpbf16ps is slower than plain avx512, on a Zen 5 twice as
// fast). Bits follow the level, so a lower one is chosen only where it is
// clearly faster, and a pool of nodes that must agree bit for bit fixes it by
// name. Thread-safe.
Level ChooseLevel();

// "auto" is ChooseLevel(), any other the level of that name. INVALID_ARGUMENT:
// there is none, or this CPU cannot run it; the message lists those it can.
absl::StatusOr<Level> LevelByName(absl::string_view name);

// How long one level takes, in any unit.
struct LevelTime {
  Level level = Level::kPortable;
  double time = 0.0;
};

// The highest level, unless a lower one takes less than 0.85 of its time; of
// those the fastest. `times` is not empty. Apart from the measurement for
// tests.
Level PreferredLevel(const std::vector<LevelTime>& times);

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_CHOOSE_LEVEL_H_
