// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/client_names.h"

#include <grpcpp/support/status.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/log_limiter.h"

namespace outrider {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

class ClientNameVerifier final : public ExternalCertificateVerifier {
 public:
  explicit ClientNameVerifier(std::vector<std::string> names)
      : names_(std::move(names)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* sync_status) override {
    std::vector<std::string> found;
    for (const auto& names : {request->dns_names(), request->uri_names()}) {
      for (const grpc::string_ref& name : names) {
        found.emplace_back(name.data(), name.size());
      }
    }
    const bool is_welcome =
        std::find_first_of(found.begin(), found.end(), names_.begin(),
                           names_.end()) != found.end();
    if (!is_welcome) {
      if (const std::optional<std::string> end = limiter_.Admit()) {
        OUTRIDER_LOG(kWarning)
            << "refused a client: its certificate is for \""
            << absl::StrJoin(found, ", ") << "\", and --tls-clients asks for \""
            << absl::StrJoin(names_, ", ") << "\"" << *end;
      }
      *sync_status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  "not one of --tls-clients");
    }
    return true;  // at once
  }
  void Cancel(TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const std::vector<std::string> names_;
  LogLimiter limiter_{std::chrono::seconds(10)};
};

}  // namespace

std::shared_ptr<grpc::experimental::CertificateVerifier> RequireClientNames(
    std::vector<std::string> names) {
  return ExternalCertificateVerifier::Create<ClientNameVerifier>(
      std::move(names));
}

}  // namespace outrider
