// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_GOLDEN_DEMO_TRIO_H_
#define OUTRIDER_TESTS_GOLDEN_DEMO_TRIO_H_

#include <memory>
#include <string>

#include "client/generation_client.h"
#include "tests/golden/child_process.h"

namespace outrider::testing {

// A path of the repository.
std::string SourcePath(const std::string& path);

// The three real programs on loopback, serving the demo pair. Failures are the
// running test's.
class DemoTrio {
 public:
  // Blocks until the coordinator has its pair.
  DemoTrio();

  client::GenerationClient& client() { return *client_; }
  // SIGTERM to each, which must exit with 0.
  void Stop();

 private:
  std::unique_ptr<ChildProcess> verifier_;
  std::unique_ptr<ChildProcess> drafter_;
  std::unique_ptr<ChildProcess> coordinator_;
  std::unique_ptr<client::GenerationClient> client_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_GOLDEN_DEMO_TRIO_H_
