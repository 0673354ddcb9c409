// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/tls_watch.h"

#include <chrono>
#include <stop_token>
#include <utility>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stoppable_sleep.h"

namespace outrider {
namespace {

constexpr std::chrono::seconds kPeriod(1);

}  // namespace

TlsWatch::TlsWatch(const TlsFiles& files) : files_(files) {
  Report(Refresh());
  const std::string identity = files.has_identity() ? identity_.path() : "";
  provider_ =
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          /*private_key_path=*/identity, /*identity_certificate_path=*/identity,
          files.has_authority() ? authority_.path() : "",
          static_cast<unsigned int>(kPeriod.count()));
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (SleepUnlessStopped(kPeriod, stop)) Report(Refresh());
  });
}

absl::Status TlsWatch::Refresh() {
  OUTRIDER_ASSIGN_OR_RETURN(TlsContent content, ReadTlsFiles(files_));
  if (content == content_) return absl::OkStatus();
  OUTRIDER_RETURN_IF_ERROR(HandOn(content));
  if (provider_ != nullptr)
    OUTRIDER_LOG(kInfo) << "TLS files have been renewed";
  content_ = std::move(content);
  return absl::OkStatus();
}

absl::Status TlsWatch::HandOn(const TlsContent& content) {
  if (content.identity != content_.identity) {
    OUTRIDER_RETURN_IF_ERROR(identity_.Replace(content.identity));
  }
  if (content.authority != content_.authority) {
    OUTRIDER_RETURN_IF_ERROR(authority_.Replace(content.authority));
  }
  return absl::OkStatus();
}

void TlsWatch::Report(const absl::Status& status) {
  const std::string problem(status.message());
  if (problem == reported_) return;
  if (problem.empty()) {
    OUTRIDER_LOG(kInfo) << "TLS files can be used again";
  } else {
    OUTRIDER_LOG(kError) << "TLS files cannot be used, and those read before "
                            "stay in use: "
                         << problem;
  }
  reported_ = problem;
}

}  // namespace outrider
