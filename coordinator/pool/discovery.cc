// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/discovery.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/stoppable_sleep.h"

namespace outrider {

Discovery::Discovery(Options options) : options_(std::move(options)) {
  const std::set<std::string> names(options_.names.begin(),
                                    options_.names.end());
  for (const std::string& name : names) {
    threads_.emplace_back(
        [this, name](const std::stop_token& stop) { Run(name, stop); });
  }
}

Discovery::~Discovery() {
  // All of them end at the same time.
  for (std::jthread& thread : threads_) thread.request_stop();
}

void Discovery::Run(const std::string& name, const std::stop_token& stop) {
  const auto tick = std::min(options_.period, options_.unserved_period);
  Name known = {.name = name};
  do {
    if (IsDue(known)) Resolve(known, stop);
  } while (SleepUnlessStopped(tick, stop));
}

bool Discovery::IsDue(const Name& name) const {
  if (!name.addresses.has_value()) return true;
  const auto age = Clock::now() - name.last_asked;
  return age >= options_.period ||
         (age >= options_.unserved_period && !options_.is_served(name.name));
}

void Discovery::Resolve(Name& name, const std::stop_token& stop) {
  name.last_asked = Clock::now();
  auto addresses = options_.resolver.Resolve(name.name, stop);
  if (stop.stop_requested()) return;
  if (!addresses.ok()) {
    if (!name.is_failing) {
      OUTRIDER_LOG(kWarning)
          << name.name << ": " << addresses.status().message() << "; "
          << (name.addresses.has_value() ? "its addresses stay as they were"
                                         : "it has no addresses yet");
    }
    name.is_failing = true;
    return;
  }
  name.is_failing = false;
  if (name.addresses == *addresses) return;
  if (addresses->empty()) {
    OUTRIDER_LOG(kWarning) << name.name
                           << " has no address; nodes that it had stay "
                           << "while they answer";
  } else {
    OUTRIDER_LOG(kInfo) << name.name << " resolves to "
                        << absl::StrJoin(*addresses, ", ");
  }
  name.addresses = *std::move(addresses);
  options_.on_change(name.name, *name.addresses);
}

}  // namespace outrider
