// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_ENDPOINT_H_
#define OUTRIDER_CORE_RPC_ENDPOINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outrider {

// An address is HOST:PORT (IPv6 hosts in brackets), or unix:PATH, the socket
// file of a server on this machine, which is plain text always: whoever may
// write to the file may call.

// INVALID_ARGUMENT unless `address` reads so, or where it is off this machine
// without `off_loopback`, which TLS or --insecure give: on plain text, anyone
// on the way could read prompts and change tokens. `flag` is named in the
// message. Port 0 is for who listens alone, and picks a free one.
enum class EndpointUse { kListens, kCalls };
absl::Status CheckEndpoint(absl::string_view address, bool off_loopback,
                           absl::string_view flag,
                           EndpointUse use = EndpointUse::kCalls);

bool IsUnixSocket(absl::string_view address);
// UNAVAILABLE where a server listens on the socket file already, or where none
// can be made. A file that a server has left behind is no hindrance.
absl::Status CheckSocketIsFree(absl::string_view address);

// The host of HOST:PORT, an IPv6 one without its brackets; empty where there is
// no port.
absl::string_view HostOf(absl::string_view address);
absl::string_view PortOf(absl::string_view address);

// Whether it is an address as it stands, with no name that has to be resolved.
bool IsResolved(absl::string_view address);

// Whether it is on this machine: its loopback, or a socket file.
bool IsLoopback(absl::string_view address);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_ENDPOINT_H_
