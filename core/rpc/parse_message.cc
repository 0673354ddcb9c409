// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/parse_message.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"
#include "core/rpc/field_count.h"

namespace outrider {

absl::StatusOr<bool> HasUnknownFields(
    const grpc::ByteBuffer& bytes, size_t most_bytes,
    const google::protobuf::Descriptor& type) {
  if (bytes.Length() > most_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the request has ", bytes.Length(),
        " bytes; those of this method have ", most_bytes, " at most"));
  }
  if (bytes.Length() <= kUncountedBytes) return false;
  grpc::ByteBuffer same = bytes;  // shared, as the reader wants its own
  grpc::ProtoBufferReader reader(&same);
  if (!reader.status().ok()) return NoMessageError();
  const FieldCount count = CountFields(reader, type, kMostFields);
  if (count.num_fields > kMostFields) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has more than ", kMostFields,
                     " fields; a list of token ids is one where it is packed"));
  }
  if (count.is_malformed) return NoMessageError();
  return count.has_unknown;
}

absl::Status NoMessageError() {
  return absl::InvalidArgumentError(
      "the request is not a message of this method's type: its bytes cannot "
      "be parsed");
}

}  // namespace outrider
