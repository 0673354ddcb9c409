// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_ENDPOINT_H_
#define OUTRIDER_CORE_RPC_ENDPOINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outrider {

// INVALID_ARGUMENT unless `address` reads HOST:PORT (IPv6 hosts in brackets),
// or is off this machine without `off_loopback`, which TLS or --insecure give:
// on plain text, anyone on the way could read prompts and change tokens. `flag`
// is named in the message.
absl::Status CheckEndpoint(absl::string_view address, bool off_loopback,
                           absl::string_view flag);

// The host of HOST:PORT, an IPv6 one without its brackets; empty where there is
// no port.
absl::string_view HostOf(absl::string_view address);
absl::string_view PortOf(absl::string_view address);

// Whether the host is an address, not a name that has to be resolved.
bool HasNumericHost(absl::string_view address);

// Whether the host part is this machine's loopback.
bool IsLoopback(absl::string_view address);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_ENDPOINT_H_
