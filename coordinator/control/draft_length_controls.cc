// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/draft_length_controls.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

// Steps of a quarter, of which only 0 is the first.
int Quarters(double value, int most) {
  return value == 0
             ? 0
             : std::clamp(static_cast<int>(std::lround(4 * value)), 1, most);
}

}  // namespace

DraftLengthControl& DraftLengthControls::Of(const Way& way) {
  const Key key = KeyOf(way);
  MutexLock lock(mu_);
  const auto known = controls_.find(key);
  if (known != controls_.end()) return known->second;
  const bool chooses_stop = !way.drafting.min_draft_probability.has_value();
  if (controls_.size() < kMost) {
    return controls_.try_emplace(key, way.schedule, chooses_stop).first->second;
  }
  return others_
      .try_emplace({way.schedule, chooses_stop}, way.schedule, chooses_stop)
      .first->second;
}

DraftLengthControls::Key DraftLengthControls::KeyOf(const Way& way) {
  constexpr int kHottest = 8;  // all that are hotter are alike
  const DraftOptions& drafting = way.drafting;
  const int least = drafting.min_draft_probability.has_value()
                        ? Quarters(*drafting.min_draft_probability, 4)
                        : -1;
  const auto schedule = static_cast<int>(way.schedule);
  std::string model =
      absl::StrCat(way.drafter.weights_hash, ":", way.drafter.dtype);
  // The drafter's argmax, whatever the rule, and however its rows are cut.
  if (IsGreedy(way.sampling)) {
    return {std::move(model), 0, 0, 0, 0, least, schedule};
  }
  return {std::move(model),
          static_cast<int>(way.rule),
          Quarters(way.sampling.temperature, kHottest),
          std::bit_width(static_cast<unsigned>(drafting.support_size)),
          static_cast<int>(std::lround(16 * drafting.support_mass)),
          least,
          schedule};
}

}  // namespace outrider
