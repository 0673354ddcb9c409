// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_METADATA_LIMITS_H_
#define OUTRIDER_CORE_RPC_METADATA_LIMITS_H_

#include <grpcpp/server_context.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace outrider {

// The headers that a call of ours may have, counted as HTTP/2 counts them.
inline constexpr size_t kMaxMetadataBytes = 8 << 10;

// What gRPC is told to take. Beyond it gRPC 1.51 gives up the whole connection
// with all its calls, so that it is more than a proxy in front of us lets
// through (60 KiB is usual), and CheckMetadata refuses the call alone.
inline constexpr int kMaxTransportMetadataBytes = 128 << 10;

// RESOURCE_EXHAUSTED where the call's headers are beyond kMaxMetadataBytes.
inline absl::Status CheckMetadata(const grpc::ServerContextBase& context) {
  constexpr size_t kEntryBytes = 32;  // what HTTP/2 adds to each
  size_t num_bytes = 0;
  for (const auto& [key, value] : context.client_metadata()) {
    num_bytes += key.size() + value.size() + kEntryBytes;
  }
  if (num_bytes <= kMaxMetadataBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the call has ", num_bytes, " bytes of metadata, more than the ",
      kMaxMetadataBytes, " that are taken"));
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_METADATA_LIMITS_H_
