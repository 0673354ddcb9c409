// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/tls_expiry.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

// Certificates made by openssl's command, which counts days from now.
class TlsExpiryTest : public ::testing::Test {
 protected:
  TlsExpiryTest() : folder_(::testing::TempDir() + "tls_expiry_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    Sign("issuer", 40);
  }
  ~TlsExpiryTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A rotation does so too: readers see one content or the other.
  void Replace(const std::string& name, const std::string& content) const {
    std::ofstream(Path("new")) << content;
    ASSERT_EQ(std::rename(Path("new").c_str(), Path(name).c_str()), 0);
  }

  // Makes NAME.pem and NAME.key, and returns the certificate.
  std::string Sign(const std::string& name, int days) const {
    const std::string files = absl::StrCat(folder_, "/", name);
    const std::string command = absl::StrCat(
        "exec 2>/dev/null; openssl req -new -newkey ec -pkeyopt "
        "ec_paramgen_curve:prime256v1 -nodes -subj /CN=x -keyout ",
        files, ".key -out ", files, ".csr && openssl x509 -req -in ", files,
        ".csr -signkey ", files, ".key -days ", days, " -out ", files, ".pem");
    EXPECT_EQ(std::system(command.c_str()), 0);
    return Read(files + ".pem");
  }

  // Days from now, rounded.
  static long DaysUntil(TlsExpiry::Time time) {
    using Days = std::chrono::duration<double, std::chrono::days::period>;
    return std::lround(Days(time - std::chrono::system_clock::now()).count());
  }

  std::string folder_;
};

TEST_F(TlsExpiryTest, OfAChainTheFirstToExpireCounts) {
  Replace("leaf.pem", Sign("leaf", 90) + Read(Path("issuer.pem")));
  TlsExpiry expiry({.certificate = Path("leaf.pem"), .key = Path("leaf.key")});
  EXPECT_EQ(DaysUntil(expiry.Certificate()), 40);
}

TEST_F(TlsExpiryTest,
       OfABundleOfAuthoritiesTheFirstOfThoseThatAreNotOverCounts) {
  Replace("ca.pem",
          Sign("new", 3650) + Sign("over", -1) + Read(Path("issuer.pem")));
  TlsExpiry expiry({.authority = Path("ca.pem")});
  EXPECT_EQ(DaysUntil(expiry.Authority()), 40);
}

TEST_F(TlsExpiryTest, ARenewedPairIsSeenAndABrokenOneHidesNothing) {
  Sign("leaf", 10);
  TlsExpiry expiry({.certificate = Path("leaf.pem"), .key = Path("leaf.key")});
  EXPECT_EQ(DaysUntil(expiry.Certificate()), 10);
  // The key is still that of the pair before.
  Replace("leaf.pem", Sign("renewed", 90));
  EXPECT_EQ(DaysUntil(expiry.Certificate()), 10);
  Replace("leaf.key", Read(Path("renewed.key")));
  EXPECT_EQ(DaysUntil(expiry.Certificate()), 90);
}

TEST_F(TlsExpiryTest, WhatCouldNeverBeUsedHasExpiredLongAgo) {
  TlsExpiry expiry({.authority = Path("none.pem")});
  EXPECT_EQ(expiry.Authority(), TlsExpiry::Time());
}

}  // namespace
}  // namespace outrider
