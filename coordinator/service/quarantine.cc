// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/quarantine.h"

#include <algorithm>

#include "core/session/siphash.h"

namespace outrider {

void Quarantine::Add(absl::Span<const TokenId> prompt, Clock::time_point now) {
  const Entry entry = {.prompt = HashOf(prompt), .until = now + kPeriod};
  MutexLock lock(mu_);
  if (entries_.size() == kMost) entries_.pop_front();
  entries_.push_back(entry);
}

bool Quarantine::Has(absl::Span<const TokenId> prompt,
                     Clock::time_point now) const {
  {
    // Nearly always: then no long prompt is hashed.
    MutexLock lock(mu_);
    if (entries_.empty() || entries_.back().until <= now) return false;
  }
  const uint64_t asked = HashOf(prompt);
  MutexLock lock(mu_);
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.until > now && entry.prompt == asked;
  });
}

uint64_t Quarantine::HashOf(absl::Span<const TokenId> prompt) const {
  return SipHash24(key_.bytes, {reinterpret_cast<const char*>(prompt.data()),
                                prompt.size() * sizeof(TokenId)});
}

}  // namespace outrider
