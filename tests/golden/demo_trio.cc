// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/demo_trio.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/rpc/channel.h"
#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace outrider::testing {

std::string SourcePath(const std::string& path) {
  return std::string(std::getenv("OUTRIDER_SOURCE_DIR")) + "/" + path;
}

DemoTrio::DemoTrio() {
  SetUpGrpc();
  const std::string bin = std::string(std::getenv("OUTRIDER_BIN_DIR")) + "/";
  const std::string target = SourcePath("models/demo-target");
  verifier_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      bin + "outrider-verifier", "--model", target, "--listen", "127.0.0.1:0"});
  drafter_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      bin + "outrider-drafter", "--model", SourcePath("models/demo-draft"),
      "--listen", "127.0.0.1:0"});
  const auto verifier_address = verifier_->ListenAddress();
  const auto drafter_address = drafter_->ListenAddress();
  EXPECT_THAT(verifier_address, IsOk());
  EXPECT_THAT(drafter_address, IsOk());
  coordinator_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      bin + "outrider-coordinator", "--verifier", *verifier_address,
      "--drafter", *drafter_address, "--tokenizer", target, "--listen",
      "127.0.0.1:0"});
  const auto address = coordinator_->ListenAddress();
  EXPECT_THAT(address, IsOk());
  client_ = std::make_unique<client::GenerationClient>(*address);
  for (int i = 0; i < 100; ++i) {
    const auto deployment = client_->Describe(std::chrono::seconds(5));
    if (deployment.ok() && deployment->drafters.size() == 1) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ADD_FAILURE() << "the coordinator did not find its pair";
}

void DemoTrio::Stop() {
  for (ChildProcess* process :
       {coordinator_.get(), drafter_.get(), verifier_.get()}) {
    process->Signal(SIGTERM);
    EXPECT_EQ(process->Wait(), 0);
  }
}

}  // namespace outrider::testing
