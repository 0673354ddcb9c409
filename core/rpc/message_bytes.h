// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_MESSAGE_BYTES_H_
#define OUTRIDER_CORE_RPC_MESSAGE_BYTES_H_

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include "core/base/check.h"

namespace outrider {

// The message must have less than 2 GiB.
template <typename Message>
grpc::ByteBuffer BytesOfMessage(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own_buffer = false;
  using Traits = grpc::SerializationTraits<Message>;
  OUTRIDER_CHECK(Traits::Serialize(message, &bytes, &own_buffer).ok());
  return bytes;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_MESSAGE_BYTES_H_
