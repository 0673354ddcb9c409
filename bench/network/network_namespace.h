// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_NETWORK_NAMESPACE_H_
#define OUTRIDER_BENCH_NETWORK_NETWORK_NAMESPACE_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/network/socket.h"

namespace outrider::bench {

// A network of its own (network_namespaces(7)), loopback up. It has no name:
// it ends with the last descriptor and process in it, so that nothing is left
// behind, whatever ends this program. Thread-safe.
class NetworkNamespace {
 public:
  // A new one. PERMISSION_DENIED: needs root (CAP_SYS_ADMIN).
  static absl::StatusOr<NetworkNamespace> Create();
  // The calling thread's.
  static absl::StatusOr<NetworkNamespace> Current();

  int fd() const { return file_.fd(); }

 private:
  explicit NetworkNamespace(Socket file) : file_(std::move(file)) {}

  Socket file_;  // /proc/.../ns/net
};

// The calling thread is in a namespace from construction to destruction: the
// sockets it makes, the threads and the processes that it starts are. Must end
// on the thread that it began on.
class ScopedNamespace {
 public:
  // PERMISSION_DENIED as above.
  static absl::StatusOr<ScopedNamespace> Enter(const NetworkNamespace& space);
  ScopedNamespace(ScopedNamespace&&) = default;
  ScopedNamespace& operator=(ScopedNamespace&&) = delete;
  ~ScopedNamespace();

 private:
  explicit ScopedNamespace(Socket before) : before_(std::move(before)) {}

  Socket before_;  // the namespace to go back to
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_NETWORK_NAMESPACE_H_
