// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/read_only_file.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// Far above any chain of certificates and any bundle of authorities.
constexpr size_t kMaxFileBytes = 4 << 20;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// A file, with the flag that names it.
struct PemFile {
  std::string name = {};  // "--tls-cert /etc/tls/tls.crt"
  std::string content = {};

  absl::Status Invalid(absl::string_view problem) const {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", problem));
  }
  Bio Open() const {
    return {BIO_new_mem_buf(content.data(), static_cast<int>(content.size())),
            &BIO_free};
  }
};

absl::StatusOr<PemFile> ReadFile(absl::string_view flag,
                                 const std::string& path) {
  absl::StatusOr<std::string> content = ReadWholeFile(path, kMaxFileBytes);
  if (!content.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " ", path, ": cannot be read: ", content.status().message()));
  }
  return PemFile{.name = absl::StrCat(flag, " ", path),
                 .content = *std::move(content)};
}

// The next one; null where there is none, or it is damaged.
Certificate ReadCertificate(const Bio& bio) {
  return {PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free};
}

absl::Status CheckTimes(const PemFile& file, const Certificate& certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return file.Invalid("the certificate has expired");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) > 0) {
    return file.Invalid(
        "the certificate is not valid yet; is this machine's clock right?");
  }
  return absl::OkStatus();
}

absl::Status NoCertificate(const PemFile& file) {
  return file.Invalid("holds no certificate in PEM form");
}

absl::StatusOr<Certificate> ParseCertificate(const PemFile& file) {
  Certificate certificate = ReadCertificate(file.Open());
  if (certificate == nullptr) return NoCertificate(file);
  OUTRIDER_RETURN_IF_ERROR(CheckTimes(file, certificate));
  return certificate;
}

// Of a bundle some may have expired or not begun, as where a new authority
// takes an old one's place, but not all.
absl::Status CheckAuthorities(const PemFile& file) {
  const Bio bio = file.Open();
  absl::Status status = NoCertificate(file);
  int num_read = 0;
  ERR_clear_error();
  while (const Certificate certificate = ReadCertificate(bio)) {
    ++num_read;
    if (!status.ok()) status = CheckTimes(file, certificate);
  }
  // It ends where no further one begins.
  const bool is_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (num_read == 0 || is_end) return status;
  return file.Invalid(
      absl::StrCat("certificate ", num_read + 1, " of it is damaged"));
}

absl::StatusOr<Key> ParseKey(const PemFile& file) {
  // Never asks on the terminal for the password of an encrypted key.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  Key key(
      PEM_read_bio_PrivateKey(file.Open().get(), nullptr, no_password, nullptr),
      &EVP_PKEY_free);
  if (key == nullptr) {
    return file.Invalid("holds no private key in PEM form, unencrypted");
  }
  return key;
}

absl::StatusOr<std::string> ReadIdentity(const TlsFiles& files) {
  OUTRIDER_ASSIGN_OR_RETURN(const PemFile certificate_file,
                            ReadFile("--tls-cert", files.certificate));
  OUTRIDER_ASSIGN_OR_RETURN(const PemFile key_file,
                            ReadFile("--tls-key", files.key));
  OUTRIDER_ASSIGN_OR_RETURN(const Certificate certificate,
                            ParseCertificate(certificate_file));
  OUTRIDER_ASSIGN_OR_RETURN(const Key key, ParseKey(key_file));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return key_file.Invalid(
        absl::StrCat("is not the key of ", files.certificate));
  }
  return absl::StrCat(certificate_file.content, "\n", key_file.content);
}

}  // namespace

absl::StatusOr<TlsContent> ReadTlsFiles(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert and --tls-key go together: pass ",
                     files.key.empty() ? "--tls-key" : "--tls-cert", " too"));
  }
  TlsContent content;
  if (files.has_identity()) {
    OUTRIDER_ASSIGN_OR_RETURN(content.identity, ReadIdentity(files));
  }
  if (files.has_authority()) {
    OUTRIDER_ASSIGN_OR_RETURN(PemFile file,
                              ReadFile("--tls-ca", files.authority));
    OUTRIDER_RETURN_IF_ERROR(CheckAuthorities(file));
    content.authority = std::move(file.content);
  }
  return content;
}

absl::Status CheckTlsFiles(const TlsFiles& files) {
  return ReadTlsFiles(files).status();
}

}  // namespace outrider
