// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_TLS_H_
#define OUTRIDER_CORE_RPC_TLS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>
#include <vector>

#include "core/rpc/tls_files.h"

namespace outrider {

// Credentials follow their files (TlsWatch) and must outlive the connections
// made with them. CheckTlsFiles comes first.

// Plain text without a certificate. With an
// authority, and where there are `client_names`, see RequireClientNames.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const TlsFiles& files, const std::vector<std::string>& client_names = {});
// Plain text without an authority: there would be nothing to check a server by.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const TlsFiles& files);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_TLS_H_
