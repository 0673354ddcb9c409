// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/discovery.h"

#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/testing/scripted_resolver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::ScriptedResolver;
using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const char kVerifierName[] = "verifier:7002";

class DiscoveryTest : public ::testing::Test {
 protected:
  using Change = std::pair<std::string, std::vector<std::string>>;

  void Start(Resolver& resolver, std::vector<std::string> names,
             milliseconds period) {
    discovery_.emplace(Discovery::Options{
        .resolver = resolver,
        .names = std::move(names),
        .period = period,
        .unserved_period = milliseconds(1),
        .is_served =
            [](const std::string& name) {
              return name.find("unserved") == std::string::npos;
            },
        .on_change =
            [this](const std::string& name,
                   const std::vector<std::string>& now) {
              MutexLock lock(mu_);
              changes_.emplace_back(name, now);
              changed_.NotifyAll();
            }});
  }
  void End() { discovery_.reset(); }
  // The first so many, once there are.
  std::vector<Change> WaitForChanges(size_t count) {
    MutexLock lock(mu_);
    while (changes_.size() < count) changed_.Wait(mu_);
    return changes_;
  }

  ScriptedResolver resolver_;

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<Change> changes_ ABSL_GUARDED_BY(mu_);
  std::optional<Discovery> discovery_;
};

TEST_F(DiscoveryTest, TellsOfChangesAndOfNothingElse) {
  resolver_.Set(kVerifierName, {{"10.0.0.1:7002"}});
  Start(resolver_, {kVerifierName}, milliseconds(1));
  WaitForChanges(1);
  resolver_.WaitForCalls(kVerifierName, 3);
  resolver_.Set(kVerifierName, {{"10.0.0.1:7002", "10.0.0.2:7002"}});
  WaitForChanges(2);
  resolver_.Set(kVerifierName, std::vector<std::string>());
  EXPECT_THAT(WaitForChanges(3),
              ElementsAre(Pair(kVerifierName, ElementsAre("10.0.0.1:7002")),
                          Pair(kVerifierName,
                               ElementsAre("10.0.0.1:7002", "10.0.0.2:7002")),
                          Pair(kVerifierName, IsEmpty())));
}

TEST_F(DiscoveryTest, WhileNobodyCanBeAskedAddressesStayAsTheyWere) {
  resolver_.Set(kVerifierName, {{"10.0.0.1:7002"}});
  Start(resolver_, {kVerifierName}, milliseconds(1));
  WaitForChanges(1);
  resolver_.Set(kVerifierName, absl::UnavailableError("no server"));
  resolver_.WaitForCalls(kVerifierName, 3);
  resolver_.Set(kVerifierName, {{"10.0.0.1:7002"}});
  resolver_.WaitForCalls(kVerifierName, 3);
  resolver_.Set(kVerifierName, {{"10.0.0.2:7002"}});
  EXPECT_THAT(WaitForChanges(2),
              ElementsAre(Pair(kVerifierName, ElementsAre("10.0.0.1:7002")),
                          Pair(kVerifierName, ElementsAre("10.0.0.2:7002"))));
}

TEST_F(DiscoveryTest, ANameWithoutAReadyNodeIsResolvedBeforeItsTime) {
  resolver_.Set(kVerifierName, {{"10.0.0.1:7002"}});
  Start(resolver_, {kVerifierName, "unserved:7001"}, hours(1));
  WaitForChanges(2);  // each name was asked for once
  resolver_.WaitForCalls("unserved:7001", 5);
  EXPECT_EQ(resolver_.num_calls(kVerifierName), 1);
}

TEST_F(DiscoveryTest, ANameThatCouldNotBeAskedForIsTriedAgainBeforeItsTime) {
  resolver_.Set(kVerifierName, absl::UnavailableError("no server"));
  Start(resolver_, {kVerifierName}, hours(1));
  resolver_.WaitForCalls(kVerifierName, 3);
  resolver_.Set(kVerifierName, {{"10.0.0.1:7002"}});
  EXPECT_THAT(WaitForChanges(1),
              ElementsAre(Pair(kVerifierName, ::testing::_)));
}

// It asks a DNS server that does not answer, so to say.
class HangingResolver final : public Resolver {
 public:
  absl::StatusOr<std::vector<std::string>> Resolve(
      const std::string&, const std::stop_token& stop) override {
    asked_.set_value();
    std::promise<void> stopped;
    const std::stop_callback callback(stop, [&] { stopped.set_value(); });
    stopped.get_future().wait();
    return absl::UnavailableError("stopped");
  }
  void AwaitQuestion() { asked_.get_future().wait(); }

 private:
  std::promise<void> asked_;
};

TEST_F(DiscoveryTest, ItsEndDoesNotWaitForTheResolver) {
  HangingResolver resolver;
  Start(resolver, {kVerifierName}, hours(1));
  resolver.AwaitQuestion();
  End();
}

// It answers of one name alone.
class HalfHangingResolver final : public Resolver {
 public:
  absl::StatusOr<std::vector<std::string>> Resolve(
      const std::string& name, const std::stop_token& stop) override {
    if (name == kVerifierName) return std::vector<std::string>{"10.0.0.1:7002"};
    return hanging_.Resolve(name, stop);
  }
  HangingResolver hanging_;
};

TEST_F(DiscoveryTest, ANameWhoseLookupHangsDelaysNoOther) {
  HalfHangingResolver resolver;
  Start(resolver, {"a-hanging:7001", kVerifierName}, hours(1));
  resolver.hanging_.AwaitQuestion();
  EXPECT_THAT(WaitForChanges(1),
              ElementsAre(Pair(kVerifierName, ElementsAre("10.0.0.1:7002"))));
  End();
}

TEST_F(DiscoveryTest, TheSystemKnowsLocalhost) {
  SystemResolver resolver;
  Start(resolver, {"localhost:7002"}, hours(1));
  EXPECT_THAT(
      WaitForChanges(1),
      ElementsAre(Pair("localhost:7002", ElementsAre("127.0.0.1:7002"))));
}

}  // namespace
}  // namespace outrider
