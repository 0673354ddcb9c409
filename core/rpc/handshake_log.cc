// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/handshake_log.h"

#include <grpc/support/log.h>

#include <chrono>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/log.h"
#include "core/base/log_limiter.h"

namespace outrider {
namespace {

// "peer did not return a certificate" of "SSL_ERROR_SSL: error:0A0000C7:SSL
// routines::peer did not return a certificate."
absl::string_view ReasonOf(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon != absl::string_view::npos) text.remove_prefix(colon + 1);
  absl::ConsumeSuffix(&text, ".");
  return text;
}

// Called by gRPC for each line of its own log: the others repeat what statuses
// say.
void OnGrpcLog(gpr_log_func_args* line) {
  absl::string_view text = line->message;
  if (!absl::ConsumePrefix(&text, "Handshake failed with fatal error ")) return;
  // Never destroyed: gRPC's threads outlive main.
  static LogLimiter& limiter = *new LogLimiter(std::chrono::seconds(10));
  const std::optional<std::string> end = limiter.Admit();
  if (!end) return;
  const absl::string_view reason = ReasonOf(text);
  // OpenSSL's words for bytes that are no TLS.
  const bool is_plain_text =
      reason == "wrong version number" || reason == "http request";
  OUTRIDER_LOG(kWarning) << "a TLS handshake failed: " << reason
                         << (is_plain_text ? ": the peer speaks plain text"
                                           : "")
                         << *end;
}

}  // namespace

void LogFailedHandshakes() {
  gpr_set_log_function(OnGrpcLog);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
}

}  // namespace outrider
