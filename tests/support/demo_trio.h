// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_DEMO_TRIO_H_
#define OUTRIDER_TESTS_SUPPORT_DEMO_TRIO_H_

#include <memory>
#include <string>

#include "bench/load/child_process.h"
#include "client/generation_client.h"
#include "core/testing/golden_files.h"

namespace outrider::testing {

// What outrider-drafter runs.
struct DemoDrafter {
  std::string model = SourcePath("models/demo-draft");
  std::string strategy = "model";
  std::string dtype = "auto";  // the verifier's too
};

// The three real programs on loopback, serving the demo pair, or another
// drafter for its target. Failures are the running test's.
class DemoTrio {
 public:
  // Blocks until the coordinator has its pair.
  explicit DemoTrio(DemoDrafter drafter = {});

  client::GenerationClient& client() { return *client_; }
  // SIGKILL to the drafter, and another one at its address. The verifier
  // stands still meanwhile, so that a stream under way does not end before.
  void RestartDrafter();
  // SIGTERM to each, which must exit with 0.
  void Stop();

 private:
  // Listens at `listen`; returns where.
  std::string StartDrafter(const std::string& listen);

  const DemoDrafter drafter_options_;
  std::string drafter_address_;
  std::unique_ptr<bench::ChildProcess> verifier_;
  std::unique_ptr<bench::ChildProcess> drafter_;
  std::unique_ptr<bench::ChildProcess> coordinator_;
  std::unique_ptr<client::GenerationClient> client_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_DEMO_TRIO_H_
