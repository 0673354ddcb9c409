// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_TLS_WATCH_H_
#define OUTRIDER_CORE_RPC_TLS_WATCH_H_

#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "core/rpc/memory_file.h"
#include "core/rpc/tls_files.h"

namespace outrider {

// Reads TLS files again every second, on a thread of its own, and hands on to
// gRPC what can be used. gRPC's own watcher takes whatever it finds, and
// refuses every new connection without a word when that is half a rotation;
// here the content before stays in use until the files are mended, and the log
// says what is wrong with which. Must outlive the connections that use its
// provider.
class TlsWatch {
 public:
  // CheckTlsFiles comes first; what goes wrong after it is a matter of the log.
  explicit TlsWatch(const TlsFiles& files);
  TlsWatch(const TlsWatch&) = delete;
  TlsWatch& operator=(const TlsWatch&) = delete;

  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider()
      const {
    return provider_;
  }

 private:
  // Takes over what can be used, or says what cannot.
  absl::Status Refresh();
  absl::Status HandOn(const TlsContent& content);
  void Report(const absl::Status& status);

  const TlsFiles files_;
  MemoryFile identity_;
  MemoryFile authority_;
  // Belongs to the thread alone, once it runs.
  TlsContent content_;
  std::string reported_;  // the problem that the log has, empty without one
  std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> provider_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_TLS_WATCH_H_
