// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_SHA256_H_
#define OUTRIDER_CORE_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace outrider {

// SHA-256 of bytes that arrive in pieces (FIPS 180-4). How they are cut does
// not matter: a caller who hashes several fields must delimit them itself.
// Thread-compatible; movable, not copyable.
class Sha256 {
 public:
  Sha256();

  void Update(absl::string_view bytes);
  // 64 lower-case hex digits. Call it once; no Update may follow.
  std::string HexDigest();

 private:
  struct FreeContext {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, FreeContext> context_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_SHA256_H_
