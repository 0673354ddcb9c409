// SPDX-License-Identifier: Apache-2.0
#include "bench/command/deployment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace outrider::bench {
namespace {

TEST(DeploymentTest, OtherNodesAtAnAddressAreAnotherConfiguration) {
  const auto fingerprint = [](const NodeDescription& node) {
    Configuration configuration;
    Bind({.verifiers = {node}, .drafters = {node}}, /*has_drafts=*/true,
         configuration);
    return configuration.Fingerprint();
  };
  const std::string one =
      fingerprint({.model_name = "target", .weights_hash = "one"});
  EXPECT_EQ(fingerprint({.model_name = "target", .weights_hash = "one"}), one);
  for (const NodeDescription& node :
       {NodeDescription{.model_name = "target", .weights_hash = "two"},
        NodeDescription{.model_name = "other", .weights_hash = "one"},
        NodeDescription{.model_name = "target",
        .weights_hash = "one",
        .is_simulated = true}}) {
    EXPECT_NE(fingerprint(node), one);
  }
}

TEST(DeploymentTest, OtherFilesOfAModelAreAnotherConfiguration) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) /
      ("deployment_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto fingerprint = [&folder](const std::string& weights) {
    std::ofstream(folder / "model.safetensors") << weights;
    Configuration configuration;
    BindModels(
        {.target_model = folder.string(), .draft_model = folder.string()},
        configuration, Cancellation());
    return configuration.Fingerprint();
  };
  const std::string one = fingerprint("one");
  EXPECT_NE(fingerprint("two"), one);
  EXPECT_EQ(fingerprint("one"), one);
  std::ofstream(folder / "config.json") << "{}";
  EXPECT_NE(fingerprint("one"), one);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace outrider::bench
