// SPDX-License-Identifier: Apache-2.0
#include "bench/command/bench_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "bench/command/bench_test.h"
#include "bench/load/core_placement.h"
#include "client/scripted_generation_service.h"

namespace outrider::bench {
namespace {

namespace fs = std::filesystem;

using client::ScriptedGenerationService;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The text with another string after each `"key":`.
std::string WithValue(std::string text, const std::string& key,
                      const std::string& value) {
  const std::string start = "\"" + key + "\":\"";
  for (size_t at = text.find(start); at != std::string::npos;
       at = text.find(start, at)) {
    at += start.size();
    text.replace(at, text.find('"', at) - at, value);
  }
  return text;
}

// The same with another number after each `"key":`.
std::string WithNumber(std::string text, const std::string& key,
                       const std::string& value) {
  const std::string start = "\"" + key + "\":";
  for (size_t at = text.find(start); at != std::string::npos;
       at = text.find(start, at)) {
    at += start.size();
    text.replace(at, text.find_first_of(",}", at) - at, value);
  }
  return text;
}

// A coordinator with two nodes of this description, but for their names.
ScriptedGenerationService::Script Nodes(NodeDescription node) {
  if (node.max_draft_tokens == 0) node.max_draft_tokens = 16;
  ScriptedGenerationService::Script script = client::TwoRounds();
  script.deployment.emplace();
  if (node.model_name.empty()) node.model_name = "target";
  *script.deployment->add_verifiers() = ToProto(node);
  node.model_name = "draft";
  *script.deployment->add_drafters() = ToProto(node);
  return script;
}

class BenchCommandTest : public BenchTest {
 protected:
  // The exit status; what it printed is in out_ and err_.
  int Run(const std::vector<std::string>& arguments, bool is_sweep = false) {
    absl::StatusOr<BenchOptions> options = Options(arguments, is_sweep);
    EXPECT_TRUE(options.ok()) << options.status();
    out_.str("");
    err_.str("");
    return Bench(*options,
                 {.in = in_,
                  .out = out_,
                  .err = err_,
                  .err_is_terminal = is_terminal_,
                  .no_color = no_color_},
                 cancellation_);
  }
  std::string File(const std::string& name) const {
    std::ifstream file(folder_ / "out" / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::istringstream in_;
  std::ostringstream out_;
  std::ostringstream err_;
  bool is_terminal_ = false;
  bool no_color_ = false;
  Cancellation cancellation_;
};

TEST_F(BenchCommandTest, BoundCoresAreSaidAndNeedThreads) {
  EXPECT_THAT(UsageError({"--coordinator", "127.0.0.1:1", "--bind-cores"}),
              HasSubstr("excludes"));
  EXPECT_THAT(
      UsageError({"--simulate", "--simulate-verify-ms", "3", "--bind-cores"}),
      HasSubstr("--bind-cores needs --threads"));
  EXPECT_THAT(UsageError({"--bind-cores", "--threads", "1024"}),
              HasSubstr("pass a lower --threads"));
  const auto cores = CoresOfThisThread();
  ASSERT_TRUE(cores.ok()) << cores.status();
  if (cores->size() < 2) GTEST_SKIP() << "two nodes need two cores";
  Run({"--simulate", "--simulate-verify-ms", "3", "--bind-cores", "--threads",
       "1", "--dry-run"});
  EXPECT_THAT(out_.str(), HasSubstr("cores: verifier "));
  Run({"--dry-run"});
  EXPECT_THAT(out_.str(), Not(HasSubstr("cores: ")));
}

TEST_F(BenchCommandTest, ADryRunSaysWhatItWouldDoAndLeavesNothing) {
  EXPECT_EQ(Run({"--dry-run", "--repeat", "3"}, /*is_sweep=*/true),
            client::kExitOk);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("150 points"), HasSubstr("estimated time: "),
                    HasSubstr("RTT 50 ms, 8 users, K = 8")));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(BenchCommandTest, ADryRunOfCenturiesSaysSo) {
  WritePrompts(1000);
  EXPECT_EQ(Run({"--dry-run", "--repeat", "1000", "--seconds", "1e6",
                 "--concurrency", "1", "--warm-up", "0", "--rtt", "0,1,2,3,4"},
                /*is_sweep=*/true),
            client::kExitOk);
  // 5 round trips and 5 K.
  EXPECT_THAT(out_.str(), ContainsRegex("estimated time: 69444[0-9]* h"));
}

TEST_F(BenchCommandTest, APlanThatCannotBeWrittenIsAFailure) {
  out_.setstate(std::ios::badbit);
  EXPECT_EQ(Run({"--dry-run"}), client::kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("cannot write to the output"));
}

// docs/bench.md quotes it.
TEST_F(BenchCommandTest, TheDocumentedTimeOfASweepIsThatOfItsDryRun) {
  fs::path source = std::getenv("OUTRIDER_SOURCE_DIR");
  std::ifstream page(source / "docs/bench.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  EXPECT_EQ(Run({"--dry-run", "--repeat", "3"}, /*is_sweep=*/true),
            client::kExitOk);
  const std::string said = out_.str();
  const std::string kLead = "estimated time: ";
  const size_t start = said.find(kLead) + kLead.size();
  EXPECT_THAT(
      text,
      HasSubstr("sweep --repeat 3 --out results # RTT 0-50 ms x "
                "K 0-8 x 1 and 8 users: about " +
                said.substr(start, said.find('\n', start) - start) + "\n"));
}

TEST_F(BenchCommandTest, AnAddressThatDoesNotAnswerIsSaid) {
  EXPECT_EQ(Run({"--coordinator", "127.0.0.1:1", "-k", "0"}),
            client::kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("no coordinator answers at 127.0.0.1:1"));
}

TEST_F(BenchCommandTest, KBeyondWhatTheNodesTakeIsRefused) {
  const ScriptedGenerationService service(Nodes({.max_draft_tokens = 4}));
  EXPECT_EQ(Run({"--coordinator", service.address(), "-k", "5"}),
            client::kExitBadUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--k 5 is more than target takes: 4"));
  EXPECT_EQ(
      Run({"--coordinator", service.address(), "-k", "4", "--seconds", "0.01"}),
      client::kExitOk)
      << err_.str();
}

TEST_F(BenchCommandTest, KAboveZeroNeedsADrafter) {
  const ScriptedGenerationService service(client::TwoRounds());
  EXPECT_EQ(
      Run({"--coordinator", service.address(), "-k", "0", "--seconds", "0.01"}),
      client::kExitOk);
  fs::remove_all(folder_ / "out");
  EXPECT_EQ(Run({"--coordinator", service.address(), "-k", "4"}),
            client::kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("no drafter"));
}

TEST_F(BenchCommandTest, ARunOnADeploymentWritesAllFourFiles) {
  const ScriptedGenerationService service(client::TwoRounds());
  ASSERT_EQ(Run({"--coordinator", service.address(), "-k", "0", "--seconds",
                 "0.05", "--warm-up", "0"}),
            client::kExitOk)
      << err_.str();
  EXPECT_THAT(File("results.jsonl"), HasSubstr("\"k\":0"));
  EXPECT_THAT(File("results.csv"), HasSubstr("speedup_over_plain"));
  EXPECT_THAT(File("report.md"), HasSubstr("Speed-up"));
  EXPECT_THAT(File("report.html"), HasSubstr("<svg"));
  // Not a terminal: no colour, no bar.
  EXPECT_THAT(err_.str(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(err_.str(), HasSubstr("1/1  RTT 0 ms, 1 user, K = 0"));
}

TEST_F(BenchCommandTest, ResultsAreKeptUnlessResumedOrOfAnotherConfiguration) {
  const ScriptedGenerationService service(client::TwoRounds());
  const std::vector<std::string> run = {
      "--coordinator", service.address(), "-k", "0", "--seconds", "0.05"};
  ASSERT_EQ(Run(run), client::kExitOk);
  EXPECT_EQ(Run(run), client::kExitBadUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--resume"));
  std::vector<std::string> resumed = run;
  resumed.emplace_back("--resume");
  EXPECT_EQ(Run(resumed), client::kExitOk);
  EXPECT_THAT(err_.str(), Not(HasSubstr("1/1")));
  resumed.insert(resumed.end(), {"--seed", "7"});
  EXPECT_EQ(Run(resumed), client::kExitBadUsage);
  EXPECT_THAT(err_.str(), HasSubstr("another configuration"));
}

TEST_F(BenchCommandTest, AResumeRefusesAnotherDeployment) {
  std::vector<std::string> run = {"", "", "-k", "1", "--seconds", "0.01"};
  const auto on = [&run](const ScriptedGenerationService& service) {
    run[0] = "--coordinator";
    run[1] = service.address();
    return run;
  };
  const ScriptedGenerationService first(Nodes({.weights_hash = "one"}));
  ASSERT_EQ(Run(on(first)), client::kExitOk) << err_.str();
  run.push_back("--resume");
  EXPECT_EQ(Run(on(first)), client::kExitOk) << err_.str();
  // This one is like it in all but the address.
  const ScriptedGenerationService other(Nodes({.weights_hash = "one"}));
  EXPECT_EQ(Run(on(other)), client::kExitBadUsage);
  EXPECT_THAT(err_.str(), HasSubstr("another configuration"));
}

TEST_F(BenchCommandTest, AResumeOfACompleteSimulatedRunKeepsItsMarkAndOrigin) {
  const ScriptedGenerationService service(Nodes({.is_simulated = true}));
  std::vector<std::string> run = {
      "--coordinator", service.address(), "-k", "1", "--seconds", "0.01"};
  ASSERT_EQ(Run(run), client::kExitOk) << err_.str();
  ASSERT_THAT(File("report.md"), HasSubstr("Simulated nodes"));
  // The rows now look as if another build had measured them, elsewhere and long
  // ago.
  std::string rows = File("results.jsonl");
  rows = WithValue(rows, "date", "2020-01-01 00:00 UTC");
  rows = WithValue(rows, "commit", "0ld");
  std::ofstream(folder_ / "out" / "results.jsonl") << rows;
  run.push_back("--resume");
  ASSERT_EQ(Run(run), client::kExitOk) << err_.str();
  EXPECT_THAT(File("report.md"),
              AllOf(HasSubstr("Simulated nodes"),
                    HasSubstr("- date: 2020-01-01 00:00 UTC\n"),
                    HasSubstr("- commit: 0ld\n")));
  EXPECT_THAT(File("report.html"), HasSubstr("Simulated nodes"));
  EXPECT_THAT(File("results.csv"), HasSubstr("\nyes,"));
}

TEST_F(BenchCommandTest, NoPromptIsUsedTwiceAtAPoint) {
  WritePrompts(3);
  const ScriptedGenerationService service(client::TwoRounds());
  ASSERT_EQ(Run({"--coordinator", service.address(), "-k", "0", "--seconds",
                 "60", "--warm-up", "1"}),
            client::kExitOk);
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("2 requests"), HasSubstr("out of prompts")));
}

TEST_F(BenchCommandTest, NoPromptOrSeedIsUsedTwiceInACellOverItsRepeats) {
  // So long that each repeat spends its part of the prompts.
  const ScriptedGenerationService service(client::TwoRounds());
  ASSERT_EQ(Run({"--coordinator", service.address(), "-k", "0", "--seconds",
                 "60", "--concurrency", "2", "--repeat", "3"}),
            client::kExitOk);
  std::set<int> prompts;
  std::set<uint64_t> seeds;
  for (const v1::GenerateRequest& request : service.requests()) {
    prompts.insert(static_cast<int>(request.tokens().ids(0)));
    seeds.insert(request.seed());
  }
  EXPECT_EQ(service.requests().size(), 40U);
  EXPECT_EQ(prompts.size(), 40U);
  EXPECT_EQ(seeds.size(), 40U);
}

TEST_F(BenchCommandTest, ATerminalGetsABarAndColorAndNoColorTakesTheColorAway) {
  const ScriptedGenerationService service(Nodes({}));
  const std::vector<std::string> run = {
      "--coordinator", service.address(), "-k", "1", "--seconds", "0.01"};
  const std::string empty_bar = "\r\x1b[K[" + std::string(24, '-') + "] 0/2";
  const std::string half_bar =
      "\r\x1b[K[" + std::string(12, '#') + std::string(12, '-') + "] 1/2";
  is_terminal_ = true;
  ASSERT_EQ(Run(run), client::kExitOk) << err_.str();
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr(empty_bar), HasSubstr(half_bar),
                    HasSubstr(" left: RTT 0 ms, 1 user, K = 1"),
                    HasSubstr("\x1b[0m, "), ContainsRegex("\x1b\\[3[23]m")));
  // The bar is gone at the end, and what is printed has no color ever.
  EXPECT_TRUE(absl::EndsWith(err_.str(), "\r\x1b[K"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("\x1b")));

  fs::remove_all(folder_ / "out");
  no_color_ = true;
  ASSERT_EQ(Run(run), client::kExitOk) << err_.str();
  EXPECT_THAT(err_.str(), AllOf(HasSubstr(empty_bar), HasSubstr(half_bar),
                                Not(HasSubstr("\x1b[0m")),
                                Not(ContainsRegex("\x1b\\[3[0-9]m"))));

  fs::remove_all(folder_ / "out");
  is_terminal_ = false;
  no_color_ = false;
  ASSERT_EQ(Run(run), client::kExitOk) << err_.str();
  EXPECT_THAT(err_.str(), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\r")),
                                HasSubstr("1/2  RTT 0 ms, 1 user, K = 0"),
                                HasSubstr("2/2  RTT 0 ms, 1 user, K = 1")));
}

TEST_F(BenchCommandTest, AMissedRatioIsAFailure) {
  const ScriptedGenerationService service(Nodes({}));
  EXPECT_EQ(Run({"--coordinator", service.address(), "-k", "1", "--seconds",
                 "0.05", "--fail-under", "100000"}),
            client::kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("--fail-under"));
  EXPECT_THAT(UsageError({"--k", "0", "--fail-under", "1"}),
              HasSubstr("name a K above 0"));
}

// What a crowd of K = 0 gains over one user counts for nothing.
TEST_F(BenchCommandTest, PlainDecodingMeetsNoRatio) {
  const ScriptedGenerationService service(Nodes({}));
  const std::vector<std::string> run = {"--coordinator",
                                        service.address(),
                                        "--rtt",
                                        "0",
                                        "-k",
                                        "1",
                                        "--seconds",
                                        "0.01",
                                        "--concurrency",
                                        "1,4",
                                        "--fail-under",
                                        "0.001"};
  ASSERT_EQ(Run(run, /*is_sweep=*/true), client::kExitOk) << err_.str();
  // Now every cell that drafts looks as if it had been slow.
  std::string rows;
  std::istringstream lines(File("results.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    if (absl::StrContains(line, "\"k\":1")) {
      line = WithNumber(WithNumber(line, "mean", "1e9"), "tokens_per_second",
                        "1e-9");
    }
    rows += line + "\n";
  }
  std::ofstream(folder_ / "out" / "results.jsonl") << rows;
  std::vector<std::string> resumed = run;
  resumed.push_back("--resume");
  EXPECT_EQ(Run(resumed, /*is_sweep=*/true), client::kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("the best speed-up of a K above 0"));
}

TEST_F(BenchCommandTest, ACrowdAtADeploymentIsComparedWithOneUserIfItHasOne) {
  const ScriptedGenerationService service(client::TwoRounds());
  const auto sweep = [&](const std::string& users) {
    fs::remove_all(folder_ / "out");
    EXPECT_EQ(Run({"--coordinator", service.address(), "--rtt", "0", "-k", "0",
                   "--seconds", "0.05", "--concurrency", users},
                  /*is_sweep=*/true),
              client::kExitOk)
        << err_.str();
  };
  sweep("2,1");
  EXPECT_THAT(File("results.jsonl"),
              Not(HasSubstr("\"speedup_over_plain_in_verifier\":null")));
  sweep("2");
  EXPECT_THAT(File("results.jsonl"),
              AllOf(HasSubstr("\"speedup_over_plain_in_verifier\":null"),
                    HasSubstr("\"speedup_over_k0_same_network\":1.0")));
  EXPECT_THAT(File("report.md"), HasSubstr("| 0 ms | **(1.00)** |"));
  EXPECT_THAT(File("report.md"), HasSubstr("| 2 users | 0 |  | 1.00 |"));
  EXPECT_THAT(err_.str(), HasSubstr("repeat 1: 1.00x K = 0, "));
  EXPECT_THAT(UsageError({"--coordinator", service.address(), "--rtt", "0",
                          "--concurrency", "2", "--fail-under", "1"}),
              HasSubstr("--fail-under"));
}

TEST_F(BenchCommandTest, AnOpenLoopSendsByItself) {
  const ScriptedGenerationService service(client::TwoRounds());
  ASSERT_EQ(Run({"--coordinator", service.address(), "-k", "0", "--seconds",
                 "0.3", "--rate", "50"}),
            client::kExitOk)
      << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("50 requests/s"));
}

// More than may be in flight: places are taken again.
TEST_F(BenchCommandTest, AnOpenLoopSendsAsManyAsThereArePrompts) {
  WritePrompts(700);
  const ScriptedGenerationService service(client::TwoRounds());
  ASSERT_EQ(Run({"--coordinator", service.address(), "-k", "0", "--seconds",
                 "100", "--rate", "10000", "--warm-up", "0"}),
            client::kExitOk)
      << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("700 requests"));
}

TEST_F(BenchCommandTest, AnOpenLoopWithoutARequestIsNotMeasured) {
  const ScriptedGenerationService service(client::TwoRounds());
  EXPECT_EQ(Run({"--coordinator", service.address(), "-k", "0", "--seconds",
                 "0.01", "--rate", "0.01"}),
            client::kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("not measured: no request was due in 0.01 s"
                                    ": pass more --seconds"));
  EXPECT_EQ(File("results.jsonl"), "");
}

TEST_F(BenchCommandTest, RequestsThatFailAreCountedAndFailTheRun) {
  ScriptedGenerationService::Script script = client::TwoRounds();
  script.updates.pop_back();  // a stream without its end
  const ScriptedGenerationService service(script);
  EXPECT_EQ(Run({"--coordinator", service.address(), "-k", "0", "--seconds",
                 "0.01", "--warm-up", "0"}),
            client::kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("requests failed"));
  EXPECT_THAT(File("results.jsonl"), HasSubstr("without its last message"));
}

TEST_F(BenchCommandTest, AnInterruptDoesNotWaitUntilModelsAreRead) {
  const fs::path model = folder_ / "model";
  fs::create_directories(model);
  const std::ofstream file(model / "model.safetensors");
  // A hole: to read it takes longer than this test may.
  fs::resize_file(model / "model.safetensors", uint64_t{1} << 40);
  cancellation_.Cancel();
  EXPECT_EQ(Run({"--target-model", model.string(), "--draft-model",
                 model.string(), "-k", "0"}),
            client::kExitInterrupted);
  EXPECT_THAT(err_.str(), HasSubstr("reading the models' files"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(BenchCommandTest, AnInterruptDoesNotWaitForTheNextRequestToBeDue) {
  const ScriptedGenerationService service(client::TwoRounds());
  std::jthread interrupt([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    cancellation_.Cancel();
  });
  EXPECT_EQ(Run({"--coordinator", service.address(), "-k", "0", "--rate",
                 "0.01", "--seconds", "100000"}),
            client::kExitInterrupted);
  // Nothing was measured: there is nothing to report.
  EXPECT_FALSE(fs::exists(folder_ / "out" / "report.html"));
}

TEST_F(BenchCommandTest, AnInterruptedRunSaysSoAndReportsWhatItHas) {
  const ScriptedGenerationService service(client::TwoRounds());
  std::vector<std::string> run = {"--coordinator", service.address(), "-k", "0",
                                  "--seconds",     "100000"};
  // It ends as soon as the prompts are used up.
  ASSERT_EQ(Run(run), client::kExitOk) << err_.str();
  fs::remove(folder_ / "out" / "report.html");
  std::jthread interrupt([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    cancellation_.Cancel();
  });
  run.insert(run.end(), {"--resume", "--rate", "0.01"});
  EXPECT_EQ(Run(run), client::kExitInterrupted);
  EXPECT_THAT(err_.str(), HasSubstr("interrupted: 1 points"));
  EXPECT_THAT(err_.str(), HasSubstr("--resume"));
  EXPECT_THAT(File("report.html"), HasSubstr("</html>"));
}

}  // namespace
}  // namespace outrider::bench
