// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_TLS_FILES_H_
#define OUTRIDER_CORE_RPC_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace outrider {

// PEM files. They are read again within seconds of a change, so a certificate
// is rotated without a restart.
struct TlsFiles {
  std::string certificate = {};  // ours, then its issuers, leaf first
  std::string key = {};          // of the certificate
  // One, or several of them one after the other: signs the certificates of
  // those we talk to. A server that has one requires client certificates.
  std::string authority = {};

  bool has_identity() const { return !certificate.empty(); }
  bool has_authority() const { return !authority.empty(); }
};

// What the files hold, in PEM form.
struct TlsContent {
  // The certificates and their key, one after the other: what belongs together
  // is never handed on apart. Empty without a certificate.
  std::string identity = {};
  std::string authority = {};

  friend bool operator==(const TlsContent&, const TlsContent&) = default;
};

// What can be used, now: each file is there, our certificate and one of the
// authorities at least are valid today, none of these is damaged, and the key
// is the certificate's. INVALID_ARGUMENT names the flag (--tls-cert, --tls-key,
// --tls-ca) and the file.
absl::StatusOr<TlsContent> ReadTlsFiles(const TlsFiles& files);
absl::Status CheckTlsFiles(const TlsFiles& files);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_TLS_FILES_H_
