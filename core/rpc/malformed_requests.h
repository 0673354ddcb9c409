// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_MALFORMED_REQUESTS_H_
#define OUTRIDER_CORE_RPC_MALFORMED_REQUESTS_H_

#include <grpcpp/server_builder.h>

namespace outrider {

// Makes a server answer bytes that are no message of the method's type with
// INVALID_ARGUMENT and a text. gRPC's own answer to them is that of a method
// that it does not have, UNIMPLEMENTED, and empty.
void ExplainMalformedRequests(grpc::ServerBuilder& builder);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_MALFORMED_REQUESTS_H_
