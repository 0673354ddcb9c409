// SPDX-License-Identifier: Apache-2.0
// How anybody's server ends a call: the first byte is the code, the others are
// its words, or its `grpc-status-details-bin`.
#include <chrono>
#include <string>

#include "core/base/retry_delay.h"
#include "core/rpc/status_convert.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {
namespace {

void Try(const grpc::Status& sent) {
  const absl::Status status = FromGrpcStatus(sent);
  OUTRIDER_CHECK(status.ok() == sent.ok());
  const auto delay = RetryDelayOf(status);
  if (delay.has_value()) {
    OUTRIDER_CHECK(delay->count() >= 0);
    // Whoever waits adds them; the sanitizer sees what does not fit.
    const auto now = std::chrono::steady_clock::now();
    OUTRIDER_CHECK(now + *delay >= now);
  }
  // A coordinator's clients hear the same.
  const absl::Status again = FromGrpcStatus(ToGrpcStatus(status));
  OUTRIDER_CHECK(again.code() == status.code());
  OUTRIDER_CHECK(again.message() == status.message());
  OUTRIDER_CHECK(RetryDelayOf(again) == delay);
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider::testing;  // NOLINT: a program of one function
  if (size == 0) return 0;
  const auto code =
      static_cast<grpc::StatusCode>(data[0] % (grpc::UNAUTHENTICATED + 1));
  const std::string text(AsText(data + 1, size - 1));
  Try(grpc::Status(code, text));
  Try(grpc::Status(code, "full", text));
  return 0;
}
