// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_HANDSHAKE_LOG_H_
#define OUTRIDER_CORE_RPC_HANDSHAKE_LOG_H_

namespace outrider {

// From now on, TLS handshakes that fail in this process are logged, one line in
// 10 s: gRPC tells nobody but its own log why. Servers need it, as clients
// cannot say it to them.
void LogFailedHandshakes();

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_HANDSHAKE_LOG_H_
