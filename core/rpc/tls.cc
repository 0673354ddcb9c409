// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/tls.h"

#include <grpcpp/security/tls_credentials_options.h>

#include <memory>
#include <utility>

#include "core/rpc/client_names.h"
#include "core/rpc/tls_watch.h"

namespace outrider {
namespace {

// The credentials, which keep what they are renewed from.
template <typename Credentials>
std::shared_ptr<Credentials> Keeping(std::unique_ptr<TlsWatch> watch,
                                     std::shared_ptr<Credentials> credentials) {
  struct Kept {
    std::unique_ptr<TlsWatch> watch;
    std::shared_ptr<Credentials> credentials;
  };
  const auto kept = std::make_shared<Kept>(
      Kept{.watch = std::move(watch), .credentials = std::move(credentials)});
  return {kept, kept->credentials.get()};
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const TlsFiles& files, const std::vector<std::string>& client_names) {
  if (!files.has_identity()) return grpc::InsecureServerCredentials();
  auto watch = std::make_unique<TlsWatch>(files);
  grpc::experimental::TlsServerCredentialsOptions options(watch->provider());
  options.watch_identity_key_cert_pairs();
  if (files.has_authority()) {
    options.watch_root_certs();
    options.set_cert_request_type(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    if (!client_names.empty()) {
      options.set_certificate_verifier(RequireClientNames(client_names));
    }
  }
  return Keeping(std::move(watch),
                 grpc::experimental::TlsServerCredentials(options));
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const TlsFiles& files) {
  if (!files.has_authority()) return grpc::InsecureChannelCredentials();
  auto watch = std::make_unique<TlsWatch>(files);
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(watch->provider());
  options.watch_root_certs();
  if (files.has_identity()) options.watch_identity_key_cert_pairs();
  return Keeping(std::move(watch), grpc::experimental::TlsCredentials(options));
}

}  // namespace outrider
