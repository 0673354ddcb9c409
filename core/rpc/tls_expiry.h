// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_TLS_EXPIRY_H_
#define OUTRIDER_CORE_RPC_TLS_EXPIRY_H_

#include <chrono>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "core/rpc/tls_files.h"

namespace outrider {

// When the certificates in use expire. They are those that the files held when
// they could last be used, as with TlsWatch: the end of a pair that a broken
// renewal has left in use is not hidden. Thread-safe.
class TlsExpiry {
 public:
  using Time = std::chrono::sys_seconds;

  explicit TlsExpiry(const TlsFiles& files);

  // Each reads the files again. The epoch: they could not be used yet.

  // The first of our chain to expire, as peers check all of it.
  Time Certificate();
  // The first to expire of the authorities that were not over: a bundle may
  // hold some that are.
  Time Authority();

 private:
  void Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TlsFiles files_;
  Mutex mu_;
  Time certificate_ ABSL_GUARDED_BY(mu_) = {};
  Time authority_ ABSL_GUARDED_BY(mu_) = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_TLS_EXPIRY_H_
