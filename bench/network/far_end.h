// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_FAR_END_H_
#define OUTRIDER_BENCH_NETWORK_FAR_END_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/network/network_namespace.h"
#include "bench/network/tunnel.h"

namespace outrider::bench {

// A place for one process, behind a tunnel. The tunnel goes before its space.
struct FarEnd {
  NetworkNamespace space;
  std::unique_ptr<Tunnel> tunnel;
};

// Takes the first network number that is free. PERMISSION_DENIED: needs root.
absl::StatusOr<FarEnd> MakeFarEnd(const LinkOptions& link);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_FAR_END_H_
