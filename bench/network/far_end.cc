// SPDX-License-Identifier: Apache-2.0
#include "bench/network/far_end.h"

#include <unistd.h>

#include <utility>

#include "core/base/status_macros.h"

namespace outrider::bench {

absl::StatusOr<FarEnd> MakeFarEnd(const LinkOptions& link) {
  constexpr int kTries = 16;
  OUTRIDER_ASSIGN_OR_RETURN(NetworkNamespace space, NetworkNamespace::Create());
  absl::StatusOr<std::unique_ptr<Tunnel>> tunnel;
  for (int i = 0; i < kTries; ++i) {
    // Others of this machine begin elsewhere.
    tunnel =
        Tunnel::Start(space, {.link = link, .network = (getpid() + i) % 256});
    if (!absl::IsUnavailable(tunnel.status())) break;
  }
  OUTRIDER_RETURN_IF_ERROR(tunnel.status());
  return FarEnd{std::move(space), *std::move(tunnel)};
}

}  // namespace outrider::bench
