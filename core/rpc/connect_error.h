// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_CONNECT_ERROR_H_
#define OUTRIDER_CORE_RPC_CONNECT_ERROR_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/rpc/tls_files.h"

namespace outrider {

// Why there is no connection to a server, with a remedy, made of gRPC's words
// for it ("failed to connect to all addresses; last error: ...") and of what
// the client went with. Nothing where nobody listens or answers, or the
// words are of something else.
std::optional<std::string> ExplainConnectError(absl::string_view message,
                                               const TlsFiles& tls);

// The status of a call, with that reason in place of gRPC's words where there
// is one.
absl::Status Explained(const absl::Status& status, const TlsFiles& tls);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_CONNECT_ERROR_H_
