// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/tls_expiry.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace outrider {
namespace {

using Time = TlsExpiry::Time;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

// All of a text that ReadTlsFiles gave; a key among them is passed over.
std::vector<Certificate> CertificatesOf(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  std::vector<Certificate> certificates;
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next, &X509_free);
  }
  ERR_clear_error();  // the end of the text is one
  return certificates;
}

bool IsOver(const Certificate& certificate) {
  return X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0;
}

Time ExpiryOf(const Certificate& certificate) {
  std::tm time = {};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &time);
  return Time(std::chrono::seconds(timegm(&time)));
}

Time FirstExpiry(const std::vector<Certificate>& certificates) {
  Time first = Time::max();
  for (const Certificate& certificate : certificates) {
    first = std::min(first, ExpiryOf(certificate));
  }
  return certificates.empty() ? Time() : first;
}

}  // namespace

// What is in use from the start on is known, whatever becomes of the files
// until somebody asks.
TlsExpiry::TlsExpiry(const TlsFiles& files) : files_(files) {
  const MutexLock lock(mu_);
  Refresh();
}

Time TlsExpiry::Certificate() {
  const MutexLock lock(mu_);
  Refresh();
  return certificate_;
}

Time TlsExpiry::Authority() {
  const MutexLock lock(mu_);
  Refresh();
  return authority_;
}

void TlsExpiry::Refresh() {
  const absl::StatusOr<TlsContent> content = ReadTlsFiles(files_);
  if (!content.ok()) return;  // TlsWatch logs why
  certificate_ = FirstExpiry(CertificatesOf(content->identity));
  auto authorities = CertificatesOf(content->authority);
  std::erase_if(authorities, &IsOver);
  authority_ = FirstExpiry(authorities);
}

}  // namespace outrider
