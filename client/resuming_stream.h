// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_RESUMING_STREAM_H_
#define OUTRIDER_CLIENT_RESUMING_STREAM_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/generation_client.h"
#include "client/generation_request.h"
#include "core/base/mutex.h"
#include "core/rpc/tls_files.h"
#include "core/wire/generation_update.h"

namespace outrider::client {

// One generation over several coordinators: where its stream breaks, it goes on
// at the next of them after the tokens that it has, with the model that its
// start named, and its seed: which flips other coins from there on where the
// text depends on drafts, so that the one start that is told does not repeat
// all of it. All are tried by turns, after the retry delays that were asked for
// and a pause: each twice, and what has begun for as long as a token has come
// within `longest_search`. A name may stand for several of them, and is tried
// again, too. With one coordinator's address it is a GenerationStream. Confined
// to one thread, but for Cancel.
class ResumingStream {
 public:
  struct Options {
    std::vector<std::string> coordinators = {};  // HOST:PORT, at least one
    TlsFiles tls = {};
    std::chrono::milliseconds timeout = {};  // altogether
    std::chrono::milliseconds longest_search = std::chrono::seconds(60);
  };

  ResumingStream(GenerationRequest request, Options options);
  ResumingStream(const ResumingStream&) = delete;

  // Like the one of GenerationStream, but tells one start for several streams.
  absl::StatusOr<std::optional<GenerationUpdate>> Next();
  // Thread-safe.
  void Cancel();

  GenerationRequest ResumeRequest() const { return stream_->ResumeRequest(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kTriesOfEach = 2;

  std::unique_ptr<GenerationStream> Begin(GenerationRequest request);
  // Goes on at the next coordinator. False where that makes no sense.
  bool GoOn(const absl::Status& failure);
  bool MayTryAgain(Clock::time_point now) const;

  const GenerationRequest request_;
  const Options options_;
  const Clock::time_point deadline_;
  Mutex mu_;
  CondVar cancelled_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  size_t num_begun_ = 0;
  size_t num_tries_ = 0;  // since the last token, with whoever gave it
  Clock::time_point try_again_ = {};  // asked for by those that refused
  bool has_started_ = false;
  Clock::time_point last_heard_ = {};  // a token, or the start
  // Set under the lock, read without by its one thread.
  std::unique_ptr<GenerationStream> stream_;  // last: it begins with the rest
};

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_RESUMING_STREAM_H_
