// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/tls_files.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::StatusOr<File> Open(absl::string_view flag, const std::string& path) {
  File file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": cannot be read"));
  }
  return file;
}

absl::StatusOr<Certificate> ReadCertificate(absl::string_view flag,
                                            const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const File file, Open(flag, path));
  Certificate certificate(PEM_read_X509(file.get(), nullptr, nullptr, nullptr),
                          &X509_free);
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": holds no certificate in PEM form"));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": the certificate has expired"));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path,
                     ": the certificate is not valid yet; is this machine's "
                     "clock right?"));
  }
  return certificate;
}

absl::StatusOr<Key> ReadKey(absl::string_view flag, const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const File file, Open(flag, path));
  // Never asks on the terminal for the password of an encrypted key.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_PrivateKey(file.get(), nullptr, no_password, nullptr),
          &EVP_PKEY_free);
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " ", path, ": holds no private key in PEM form, unencrypted"));
  }
  return key;
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert and --tls-key go together: pass ",
                     files.key.empty() ? "--tls-key" : "--tls-cert", " too"));
  }
  if (files.has_identity()) {
    OUTRIDER_ASSIGN_OR_RETURN(const Certificate certificate,
                              ReadCertificate("--tls-cert", files.certificate));
    OUTRIDER_ASSIGN_OR_RETURN(const Key key, ReadKey("--tls-key", files.key));
    if (X509_check_private_key(certificate.get(), key.get()) != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--tls-key ", files.key, ": is not the key of ", files.certificate));
    }
  }
  if (files.has_authority()) {
    return ReadCertificate("--tls-ca", files.authority).status();
  }
  return absl::OkStatus();
}

}  // namespace outrider
