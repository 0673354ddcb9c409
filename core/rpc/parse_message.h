// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_PARSE_MESSAGE_H_
#define OUTRIDER_CORE_RPC_PARSE_MESSAGE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "core/base/status_macros.h"

namespace outrider {

// A Verify with 1024 rows of drafts and as many logit biases has half as many,
// and no request of ours has more than that.
inline constexpr int kMostFields = 16 << 10;

// A field has two bytes at least. Counting takes as long as parsing, so what
// has no room for too many is not counted: the messages of rounds, for one.
inline constexpr size_t kUncountedBytes = 2 * kMostFields;

// Whether more than kUncountedBytes have fields that the type has not.
// RESOURCE_EXHAUSTED where there are more than `most_bytes`; INVALID_ARGUMENT
// where they have more than kMostFields, of any kind.
absl::StatusOr<bool> HasUnknownFields(const grpc::ByteBuffer& bytes,
                                      size_t most_bytes,
                                      const google::protobuf::Descriptor& type);
absl::Status NoMessageError();

// Takes the bytes. Of more than kUncountedBytes nothing is kept that the type
// has not. Errors are those above; INVALID_ARGUMENT also where they are no such
// message.
template <typename Message>
absl::Status ParseMessage(grpc::ByteBuffer& bytes, size_t most_bytes,
                          Message& message) {
  OUTRIDER_ASSIGN_OR_RETURN(
      const bool has_unknown,
      HasUnknownFields(bytes, most_bytes, *Message::descriptor()));
  using Traits = grpc::SerializationTraits<Message>;
  if (!Traits::Deserialize(&bytes, &message).ok()) return NoMessageError();
  if (has_unknown) message.DiscardUnknownFields();
  return absl::OkStatus();
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_PARSE_MESSAGE_H_
