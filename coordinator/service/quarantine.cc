// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/quarantine.h"

#include <algorithm>

#include "core/session/siphash.h"

namespace outrider {

void Quarantine::Add(absl::Span<const TokenId> prompt,
                     absl::string_view request_id, Clock::time_point now) {
  const Entry entry = EntryOf(prompt, request_id, now);
  MutexLock lock(mu_);
  if (entries_.size() == kMost) entries_.pop_front();
  entries_.push_back(entry);
}

bool Quarantine::Has(absl::Span<const TokenId> prompt,
                     absl::string_view request_id,
                     Clock::time_point now) const {
  {
    // Nearly always: then no long prompt is hashed.
    MutexLock lock(mu_);
    if (entries_.empty() || entries_.back().until <= now) return false;
  }
  const Entry asked = EntryOf(prompt, request_id, now);
  MutexLock lock(mu_);
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.until > now && (entry.prompt == asked.prompt ||
                                 entry.request_id == asked.request_id);
  });
}

Quarantine::Entry Quarantine::EntryOf(absl::Span<const TokenId> prompt,
                                      absl::string_view request_id,
                                      Clock::time_point now) const {
  const absl::string_view tokens(reinterpret_cast<const char*>(prompt.data()),
                                 prompt.size() * sizeof(TokenId));
  return {.prompt = SipHash24(key_.bytes, tokens),
          .request_id = SipHash24(key_.bytes, request_id),
          .until = now + kPeriod};
}

}  // namespace outrider
