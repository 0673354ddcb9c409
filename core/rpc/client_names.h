// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_CLIENT_NAMES_H_
#define OUTRIDER_CORE_RPC_CLIENT_NAMES_H_

#include <grpcpp/security/tls_certificate_verifier.h>

#include <memory>
#include <string>
#include <vector>

namespace outrider {

// Lets a server's handshake fail unless the client's certificate, which the
// authority has signed, carries one of these as a DNS or URI name (subjectAlt-
// Name, exactly as written): a drafter's certificate is none of a coordinator.
std::shared_ptr<grpc::experimental::CertificateVerifier> RequireClientNames(
    std::vector<std::string> names);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_CLIENT_NAMES_H_
