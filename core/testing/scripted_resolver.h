// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_SCRIPTED_RESOLVER_H_
#define OUTRIDER_CORE_TESTING_SCRIPTED_RESOLVER_H_

#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/rpc/resolver.h"

namespace outrider::testing {

// Answers as a test says; a name of which it said nothing has no address.
// Thread-safe.
class ScriptedResolver final : public Resolver {
 public:
  using Answer = absl::StatusOr<std::vector<std::string>>;

  void Set(const std::string& endpoint, Answer answer) {
    MutexLock lock(mu_);
    answers_[endpoint] = std::move(answer);
  }
  Answer Resolve(const std::string& endpoint,
                 const std::stop_token& /*stop*/) override {
    MutexLock lock(mu_);
    ++num_calls_[endpoint];
    changed_.NotifyAll();
    const auto found = answers_.find(endpoint);
    if (found == answers_.end()) return std::vector<std::string>();
    return found->second;
  }
  // Waits until it has been asked this often more from now on.
  void WaitForCalls(const std::string& endpoint, int num_more) {
    MutexLock lock(mu_);
    const int wanted = num_calls_[endpoint] + num_more;
    while (num_calls_[endpoint] < wanted) changed_.Wait(mu_);
  }
  int num_calls(const std::string& endpoint) {
    MutexLock lock(mu_);
    return num_calls_[endpoint];
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::map<std::string, Answer> answers_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int> num_calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_SCRIPTED_RESOLVER_H_
