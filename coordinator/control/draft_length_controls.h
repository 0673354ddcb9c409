// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CONTROLS_H_
#define OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CONTROLS_H_

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "coordinator/control/draft_length_control.h"
#include "core/base/mutex.h"
#include "core/sampling/draft_options.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/wire/model_identity.h"
#include "core/wire/schedule.h"

namespace outrider {

// Those of one address: what its drafts give and cost depends on which model
// makes them, and on how they are made, drawn and judged. They stay from
// request to request. Thread-safe.
class DraftLengthControls {
 public:
  // There is one for each of so many ways, those of models that are gone
  // included, and few for all that come later: whoever names ever other options
  // does not fill the memory.
  static constexpr size_t kMost = 256;

  struct Way {
    const ModelIdentity& drafter;
    RuleKind rule = RuleKind::kRejection;
    const SamplingParams& sampling;
    const DraftOptions& drafting;
    Schedule schedule = Schedule::kSequential;
  };

  DraftLengthControl& Of(const Way& way);

 private:
  // The drafter's model, rule, temperature, support, its mass, minimal
  // probability (-1: whatever pays), schedule: what is nearly alike has the
  // same numbers.
  using Key = std::tuple<std::string, int, int, int, int, int, int>;
  static Key KeyOf(const Way& way);

  Mutex mu_;
  std::map<Key, DraftLengthControl> controls_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<Schedule, bool>, DraftLengthControl> others_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_DRAFT_LENGTH_CONTROLS_H_
