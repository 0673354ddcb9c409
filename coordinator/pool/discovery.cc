// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/discovery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/stoppable_sleep.h"

namespace outrider {

Discovery::Discovery(Options options) : options_(std::move(options)) {
  for (const std::string& name : options_.names) names_[name] = {};
  if (names_.empty()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void Discovery::Run(const std::stop_token& stop) {
  const auto tick = std::min(options_.period, options_.unserved_period);
  do {
    for (auto& [name, state] : names_) {
      if (!stop.stop_requested() && IsDue(name, state))
        Resolve(name, state, stop);
    }
  } while (SleepUnlessStopped(tick, stop));
}

bool Discovery::IsDue(const std::string& name, const Name& state) const {
  if (!state.addresses.has_value()) return true;
  const auto age = Clock::now() - state.last_asked;
  return age >= options_.period ||
         (age >= options_.unserved_period && !options_.is_served(name));
}

void Discovery::Resolve(const std::string& name, Name& state,
                        const std::stop_token& stop) {
  state.last_asked = Clock::now();
  auto addresses = options_.resolver.Resolve(name, stop);
  if (stop.stop_requested()) return;
  if (!addresses.ok()) {
    if (!state.is_failing) {
      OUTRIDER_LOG(kWarning)
          << name << ": " << addresses.status().message() << "; "
          << (state.addresses.has_value() ? "its addresses stay as they were"
                                          : "it has no addresses yet");
    }
    state.is_failing = true;
    return;
  }
  state.is_failing = false;
  if (state.addresses == *addresses) return;
  if (addresses->empty()) {
    OUTRIDER_LOG(kWarning) << name << " has no address; nodes that it had stay "
                           << "while they answer";
  } else {
    OUTRIDER_LOG(kInfo) << name << " resolves to "
                        << absl::StrJoin(*addresses, ", ");
  }
  state.addresses = *std::move(addresses);
  options_.on_change(name, *state.addresses);
}

}  // namespace outrider
