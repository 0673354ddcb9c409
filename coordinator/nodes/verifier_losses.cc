// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/verifier_losses.h"

#include <algorithm>

namespace outrider {
namespace {

bool Has(const std::vector<VerifierLosses::Id>& ids, VerifierLosses::Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

VerifierLosses::Id VerifierLosses::Met(const std::string& address,
                                       Clock::time_point now) {
  MutexLock lock(mu_);
  std::erase_if(losses_,
                [&](const Loss& loss) { return now - loss.met_at > kMemory; });
  for (Loss& loss : losses_) {
    if (loss.address == address && now - loss.met_at <= kSpread) {
      loss.met_at = now;
      return loss.id;
    }
  }
  losses_.push_back({.id = next_id_++, .address = address, .met_at = now});
  return losses_.back().id;
}

bool VerifierLosses::HasOther(const std::vector<Id>& own,
                              Clock::time_point now) const {
  MutexLock lock(mu_);
  return std::any_of(losses_.begin(), losses_.end(), [&](const Loss& loss) {
    return now - loss.met_at <= kMemory && !Has(own, loss.id);
  });
}

void VerifierLosses::Forget(const std::vector<Id>& own) {
  MutexLock lock(mu_);
  std::erase_if(losses_, [&](const Loss& loss) { return Has(own, loss.id); });
}

}  // namespace outrider
