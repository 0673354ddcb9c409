// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/connect_error.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

// The server does not say why: of what it may ask for, what is lacking.
std::string ExplainHangUp(const TlsFiles& tls) {
  if (!tls.has_authority()) {
    return "it hung up on a plain-text connection; if it speaks TLS, pass "
           "--tls-ca";
  }
  if (!tls.has_identity()) {
    return "it hung up; if it asks for a certificate, pass --tls-cert and "
           "--tls-key";
  }
  return absl::StrCat("it hung up, and does not take the certificate ",
                      tls.certificate,
                      ": another authority's, or not one of its "
                      "--tls-clients; its log says which");
}

}  // namespace

std::optional<std::string> ExplainConnectError(absl::string_view message,
                                               const TlsFiles& tls) {
  constexpr absl::string_view kLead = "last error: ";
  const size_t lead = message.find(kLead);
  if (!absl::StartsWith(message, "failed to connect") ||
      lead == absl::string_view::npos) {
    return std::nullopt;
  }
  const absl::string_view error = message.substr(lead + kLead.size());
  // The latter: whoever listens says nothing until gRPC gives up.
  if (absl::StrContains(error, "Connection refused") ||
      absl::StrContains(error, "handshaker shutdown")) {
    return std::nullopt;
  }
  if (absl::StrContains(error, "certificate verify failed")) {
    return absl::StrCat(
        "its certificate is not valid, or not signed by --tls-ca ",
        tls.authority);
  }
  if (absl::StrContains(error, "Hostname Verification Check failed")) {
    return "its certificate is for another host: call it by a name that the "
           "certificate has";
  }
  if (absl::StrContains(error, "wrong version number")) {
    return "it speaks plain text: leave out --tls-ca, or give it a certificate";
  }
  if (absl::StrContains(error, "Socket closed") ||
      absl::StrContains(error, "Connection reset")) {
    return ExplainHangUp(tls);
  }
  return std::string(error);
}

absl::Status Explained(const absl::Status& status, const TlsFiles& tls) {
  if (!absl::IsUnavailable(status)) return status;
  const auto reason = ExplainConnectError(status.message(), tls);
  return reason.has_value() ? absl::UnavailableError(*reason) : status;
}

}  // namespace outrider
