// SPDX-License-Identifier: Apache-2.0
#include "bench/load/load_generator.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"

namespace outrider::bench {
namespace {

using Clock = std::chrono::steady_clock;
using client::GenerationRequest;
using client::GenerationStream;

// Open-loop requests at the same time; beyond it the load waits, and its
// lateness counts.
constexpr int kMaxInFlight = 512;

// One load as its threads share it.
class Run {
 public:
  Run(client::GenerationClient& client, absl::Span<const Prompt> prompts,
      const LoadOptions& options, Cancellation& cancellation)
      : client_(client),
        prompts_(prompts),
        options_(options),
        cancellation_(cancellation),
        free_places_(kMaxInFlight) {
    std::iota(free_places_.begin(), free_places_.end(), size_t{0});
  }

  void WarmUp() {
    for (int i = 0; i < options_.num_warm_up; ++i) {
      const auto request = NextRequest();
      // What fails here is told by the requests that count.
      if (!request || !Send(*request, Clock::now()).status.ok()) return;
    }
  }

  LoadResult Go() {
    const Clock::time_point start = Clock::now();
    if (options_.load.is_open()) {
      const uint64_t registration =
          cancellation_.OnCancel([this] { StopArrivals(); });
      Arrive(start);
      cancellation_.Forget(registration);
    } else {
      std::vector<std::jthread> users(options_.load.concurrency);
      for (std::jthread& user : users) {
        StartThread(user, [this, start] { BeUser(start); });
      }
    }
    MutexLock lock(mu_);
    result_.wall_time = Clock::now() - start;
    return std::move(result_);
  }

 private:
  void BeUser(Clock::time_point start) {
    do {
      const auto request = NextRequest();
      if (!request || cancellation_.cancelled()) return;
      Record(Send(*request, Clock::now()));
    } while (Clock::now() < start + options_.duration);
  }

  void Arrive(Clock::time_point start) {
    std::mt19937_64 random(options_.seed);
    std::exponential_distribution<double> gap(options_.load.rate);
    // One that has a new thread's place has ended, and is joined.
    std::vector<std::jthread> requests(kMaxInFlight);
    double seconds = gap(random);
    for (; seconds < std::chrono::duration<double>(options_.duration).count();
         seconds += gap(random)) {
      const Clock::time_point due =
          start + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(seconds));
      if (!WaitUntil(due)) return;
      auto request = NextRequest();
      if (!request) return;
      const size_t place = WaitForPlace();
      const auto send = [this, request = *std::move(request), due, place] {
        Record(Send(request, due));
        Leave(place);
      };
      if (!StartThread(requests[place], send)) Leave(place);
    }
  }

  // False, and a request that has failed, where the system refuses.
  bool StartThread(std::jthread& thread, const std::function<void()>& act) {
    try {
      thread = std::jthread(act);
      return true;
    } catch (const std::system_error& error) {
      Record({.status = absl::ResourceExhaustedError(
                  absl::StrCat("cannot start a thread: ", error.what()))});
      return false;
    }
  }

  void StopArrivals() {
    MutexLock lock(mu_);
    is_stopped_ = true;
    stopped_.NotifyOne();
  }
  // False where arrivals are to stop.
  bool WaitUntil(Clock::time_point due) {
    MutexLock lock(mu_);
    while (!is_stopped_ && stopped_.WaitUntil(mu_, due)) {
    }
    return !is_stopped_;
  }

  size_t WaitForPlace() {
    MutexLock lock(mu_);
    while (free_places_.empty()) has_place_.Wait(mu_);
    const size_t place = free_places_.back();
    free_places_.pop_back();
    return place;
  }
  void Leave(size_t place) {
    MutexLock lock(mu_);
    free_places_.push_back(place);
    has_place_.NotifyOne();
  }

  std::optional<GenerationRequest> NextRequest() {
    MutexLock lock(mu_);
    if (num_taken_ == prompts_.size()) {
      result_.ran_out_of_prompts = true;
      return std::nullopt;
    }
    const size_t index = num_taken_++;
    GenerationRequest request = options_.request;
    request.prompt = prompts_[index];
    request.seed = options_.seed + index;
    return request;
  }

  RequestResult Send(const GenerationRequest& request, Clock::time_point due) {
    RequestResult result;
    const std::unique_ptr<GenerationStream> stream =
        client_.Generate(request, options_.request_timeout);
    const uint64_t registration =
        cancellation_.OnCancel([&stream] { stream->Cancel(); });
    while (true) {
      const auto update = stream->Next();
      result.duration = Clock::now() - due;
      result.status = update.status();
      if (!update.ok() || !update->has_value()) break;
      result.report.Add(**update, result.duration);
    }
    cancellation_.Forget(registration);
    return result;
  }

  void Record(RequestResult result) {
    MutexLock lock(mu_);
    result_.requests.push_back(std::move(result));
  }

  client::GenerationClient& client_;
  const absl::Span<const Prompt> prompts_;
  const LoadOptions& options_;
  Cancellation& cancellation_;

  Mutex mu_;
  CondVar has_place_;
  CondVar stopped_;
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
  size_t num_taken_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<size_t> free_places_ ABSL_GUARDED_BY(mu_);  // in an open loop
  LoadResult result_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

LoadResult GenerateLoad(client::GenerationClient& client,
                        absl::Span<const Prompt> prompts,
                        const LoadOptions& options,
                        Cancellation& cancellation) {
  Run run(client, prompts, options, cancellation);
  run.WarmUp();
  return run.Go();
}

}  // namespace outrider::bench
