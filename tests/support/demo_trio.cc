// SPDX-License-Identifier: Apache-2.0
#include "tests/support/demo_trio.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include "core/rpc/channel.h"
#include "core/testing/own_loopback.h"
#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace outrider::testing {

namespace {

using bench::ChildProcess;

constexpr std::chrono::seconds kStartTimeout(60);

// Its failure to start is the running test's.
std::unique_ptr<ChildProcess> Start(std::vector<std::string> arguments) {
  arguments[0] =
      std::string(std::getenv("OUTRIDER_BIN_DIR")) + "/" + arguments[0];
  auto process = ChildProcess::Start(arguments);
  EXPECT_THAT(process, IsOk());
  return process.ok() ? *std::move(process) : nullptr;
}

}  // namespace

DemoTrio::DemoTrio(DemoDrafter drafter) : drafter_options_(std::move(drafter)) {
  SetUpGrpc();
  const std::string target = SourcePath("models/demo-target");
  // Nodes have one thread: tests run beside each other, and waiting threads
  // would spin.
  verifier_ =
      Start({"outrider-verifier", "--threads", "1", "--model", target,
             "--dtype", drafter_options_.dtype, "--listen", OwnLoopback()});
  drafter_address_ = StartDrafter(OwnLoopback());
  const auto verifier_address = verifier_->ListenAddress(kStartTimeout);
  EXPECT_THAT(verifier_address, IsOk());
  coordinator_ = Start({"outrider-coordinator", "--verifier", *verifier_address,
                        "--drafter", drafter_address_, "--tokenizer", target,
                        "--listen", OwnLoopback()});
  const auto address = coordinator_->ListenAddress(kStartTimeout);
  EXPECT_THAT(address, IsOk());
  client_ = std::make_unique<client::GenerationClient>(*address);
  for (int i = 0; i < 100; ++i) {
    const auto deployment = client_->Describe(std::chrono::seconds(5));
    if (deployment.ok() && deployment->drafters.size() == 1) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ADD_FAILURE() << "the coordinator did not find its pair";
}

std::string DemoTrio::StartDrafter(const std::string& listen) {
  drafter_ =
      Start({"outrider-drafter", "--threads", "1", "--model",
             drafter_options_.model, "--strategy", drafter_options_.strategy,
             "--dtype", drafter_options_.dtype, "--listen", listen});
  const auto address = drafter_->ListenAddress(kStartTimeout);
  EXPECT_THAT(address, IsOk());
  return address.value_or("");
}

void DemoTrio::RestartDrafter() {
  verifier_->Signal(SIGSTOP);
  drafter_->Signal(SIGKILL);
  EXPECT_EQ(drafter_->Wait(), 128 + SIGKILL);
  EXPECT_EQ(StartDrafter(drafter_address_), drafter_address_);
  verifier_->Signal(SIGCONT);
}

void DemoTrio::Stop() {
  for (ChildProcess* process :
       {coordinator_.get(), drafter_.get(), verifier_.get()}) {
    process->Signal(SIGTERM);
    EXPECT_EQ(process->Wait(), 0);
  }
}

}  // namespace outrider::testing
