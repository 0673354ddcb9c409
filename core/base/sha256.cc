// SPDX-License-Identifier: Apache-2.0
#include "core/base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "absl/strings/escaping.h"
#include "core/base/check.h"

namespace outrider {

void Sha256::FreeContext::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  OUTRIDER_CHECK(context_ != nullptr);
  OUTRIDER_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::Update(absl::string_view bytes) {
  OUTRIDER_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) ==
                 1);
}

std::string Sha256::HexDigest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  OUTRIDER_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

}  // namespace outrider
