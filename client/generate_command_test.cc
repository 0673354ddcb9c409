// SPDX-License-Identifier: Apache-2.0
#include "client/generate_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "client/describe_command.h"
#include "client/scripted_generation_service.h"
#include "core/base/error_reason.h"
#include "core/base/retry_delay.h"
#include "core/rpc/status_convert.h"

namespace outrider::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Terminals and streams of one command.
struct Screen {
  CommandIo Io(bool is_terminal = false, bool no_color = false) {
    return {.in = in,
            .out = out,
            .err = err,
            .out_is_terminal = is_terminal,
            .err_is_terminal = is_terminal,
            .no_color = no_color};
  }

  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
};

GenerateFlags WithColor(const std::string& color) {
  GenerateFlags flags;
  flags.color = color;
  return flags;
}

GenerateFlags WithJson() {
  GenerateFlags flags;
  flags.json = true;
  return flags;
}

int Execute(const ScriptedGenerationService& service, GenerateFlags flags,
            const CommandIo& io,
            const GenerationRequest& request = {.prompt = "prompt"}) {
  flags.target.coordinator = service.address();
  Cancellation cancellation;
  return Generate(flags, request, io, cancellation);
}

TEST(GenerateCommandTest, APipeGetsTheTextAndNothingElse) {
  const ScriptedGenerationService service(TwoRounds());
  Screen screen;
  EXPECT_EQ(Execute(service, GenerateFlags(), screen.Io()), kExitOk);
  EXPECT_EQ(screen.out.str(), "abcd!");
  EXPECT_THAT(screen.err.str(), HasSubstr("2 of 4 drafts accepted (50 %)"));
  EXPECT_THAT(screen.err.str(), Not(HasSubstr("\x1b")));
}

// Both may end on one terminal: `outrider generate ... | tee text`.
TEST(GenerateCommandTest, TheSummaryBeginsALineOfItsOwnBesideAPipe) {
  for (const std::string end : {"!", "!\n"}) {
    auto script = TwoRounds();
    script.updates.back() = FinishUpdate(end);
    const ScriptedGenerationService service(script);
    Screen screen;
    EXPECT_EQ(Execute(service, GenerateFlags(), screen.Io()), kExitOk);
    EXPECT_EQ(screen.out.str(), "abcd" + end);
    EXPECT_THAT((screen.out.str() + screen.err.str()),
                HasSubstr("abcd!\n4 tokens in"));
  }
}

TEST(GenerateCommandTest, ATerminalGetsMarksAndALineEndBeforeTheSummary) {
  const ScriptedGenerationService service(TwoRounds());
  Screen screen;
  EXPECT_EQ(Execute(service, GenerateFlags(), screen.Io(/*is_terminal=*/true)),
            kExitOk);
  EXPECT_EQ(screen.out.str(),
            "\x1b[2mprompt\x1b[0m\x1b[32ma\x1b[0m\x1b[32mb\x1b[0m\x1b[36mc\x1b["
            "0m\x1b[1m\x1b[33md\x1b[0m!\n");
  EXPECT_THAT(screen.err.str(), HasSubstr("accepted draft"));
}

TEST(GenerateCommandTest, ColorIsForTerminalsWithoutNoColorUnlessItIsForced) {
  const ScriptedGenerationService service(TwoRounds());
  Screen no_color;
  Execute(service, GenerateFlags(),
          no_color.Io(/*is_terminal=*/true, /*no_color=*/true));
  EXPECT_EQ(no_color.out.str(), "abcd!\n");
  Screen never;
  Execute(service, WithColor("never"), never.Io(/*is_terminal=*/true));
  EXPECT_EQ(never.out.str(), "abcd!\n");
  Screen always;
  Execute(service, WithColor("always"), always.Io(false, /*no_color=*/true));
  EXPECT_THAT(always.out.str(), HasSubstr("\x1b[32m"));
}

// Whoever wrote the prompt may have had the model write it.
TEST(GenerateCommandTest, ATerminalWithoutColorGetsNoControlCharacters) {
  auto script = TwoRounds();
  script.updates.back() = FinishUpdate("\x1b[2J");
  const ScriptedGenerationService service(script);
  Screen terminal;
  Execute(service, WithColor("never"), terminal.Io(/*is_terminal=*/true));
  EXPECT_EQ(terminal.out.str(), "abcd\xef\xbf\xbd[2J\n");
  Screen pipe;
  Execute(service, WithColor("never"), pipe.Io());
  EXPECT_EQ(pipe.out.str(), "abcd\x1b[2J");
}

TEST(GenerateCommandTest, JsonIsOneObjectOnOneLineAndNoSummary) {
  const ScriptedGenerationService service(TwoRounds());
  Screen screen;
  EXPECT_EQ(Execute(service, WithJson(), screen.Io(/*is_terminal=*/true)),
            kExitOk);
  const std::string out = screen.out.str();
  EXPECT_EQ(out.find('\n'), out.size() - 1);
  const auto json = nlohmann::json::parse(out);
  EXPECT_EQ(json["text"], "abcd!");
  EXPECT_EQ(json["totals"]["rounds"], 2);
  EXPECT_FALSE(json.contains("rounds"));
  EXPECT_FALSE(json.contains("error"));
  EXPECT_EQ(screen.err.str(), "");
}

TEST(GenerateCommandTest, JsonOnATerminalHasItsControlCharactersEscaped) {
  const std::string text = "\x1b[2J\x7f\xc2\x9b";  // the last is C1's CSI
  auto script = TwoRounds();
  script.updates.back() = FinishUpdate(text);
  const ScriptedGenerationService service(script);
  Screen terminal, pipe;
  Execute(service, WithJson(), terminal.Io(/*is_terminal=*/true));
  Execute(service, WithJson(), pipe.Io());
  for (const Screen* screen : {&terminal, &pipe}) {
    EXPECT_EQ(nlohmann::json::parse(screen->out.str())["text"], "abcd" + text);
  }
  EXPECT_THAT(terminal.out.str(), HasSubstr("[2J\\u007f\\u009b\""));
  EXPECT_THAT(pipe.out.str(), HasSubstr("[2J\x7f\xc2\x9b\""));
}

TEST(GenerateCommandTest, JsonRoundsIsTheSameObjectWithEveryRound) {
  const ScriptedGenerationService service(TwoRounds());
  Screen screen;
  GenerateFlags flags;
  flags.json_rounds = true;
  EXPECT_EQ(Execute(service, flags, screen.Io()), kExitOk);
  const auto json = nlohmann::json::parse(screen.out.str());
  EXPECT_EQ(json["text"], "abcd!");
  EXPECT_EQ(json["rounds"].size(), 2);
}

TEST(GenerateCommandTest, AFailedCallIsOneLineWithItsCode) {
  const ScriptedGenerationService service(
      {.status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "full"}});
  Screen screen;
  EXPECT_EQ(Execute(service, WithJson(), screen.Io()), kExitFailed);
  EXPECT_EQ(screen.err.str(), "outrider: RESOURCE_EXHAUSTED: full\n");
  const auto json = nlohmann::json::parse(screen.out.str());
  EXPECT_EQ(json["token_ids"], nlohmann::json::array());
  EXPECT_EQ(json["finish_reason"], "failed");
  EXPECT_TRUE(json["seed"].is_null());
  EXPECT_TRUE(json["model"].is_null());
  EXPECT_EQ(json["error"], nlohmann::json({{"code", "RESOURCE_EXHAUSTED"},
                                           {"message", "full"}}));
  EXPECT_FALSE(json.contains("resume"));
}

TEST(GenerateCommandTest, JsonOfAFailureHasWhatTheStatusSaysBesides) {
  const ScriptedGenerationService full(
      {.status =
           ToGrpcStatus(WithRetryDelay(absl::ResourceExhaustedError("full"),
                                       std::chrono::milliseconds(300)))});
  Screen busy;
  EXPECT_EQ(Execute(full, WithJson(), busy.Io()), kExitFailed);
  const auto later = nlohmann::json::parse(busy.out.str());
  EXPECT_EQ(later["error"]["retry_after_ms"], 300);
  const ScriptedGenerationService strict(
      {.status =
           ToGrpcStatus(AtField("top_k", absl::InvalidArgumentError("no")))});
  Screen refused;
  EXPECT_EQ(Execute(strict, WithJson(), refused.Io()), kExitFailed);
  const auto wrong = nlohmann::json::parse(refused.out.str());
  EXPECT_EQ(wrong["error"]["reason"], "INVALID_VALUE");
  EXPECT_EQ(wrong["error"]["metadata"], nlohmann::json({{"field", "top_k"}}));
}

TEST(GenerateCommandTest, WhatCameBeforeAFailureIsShownAndSummedUp) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.status = {grpc::StatusCode::UNAVAILABLE, "gone"};
  const ScriptedGenerationService service(script);
  Screen screen;
  EXPECT_EQ(Execute(service, GenerateFlags(), screen.Io()), kExitFailed);
  EXPECT_EQ(screen.out.str(), "abcd");
  EXPECT_THAT(screen.err.str(), HasSubstr("4 tokens"));
  EXPECT_THAT(screen.err.str(), HasSubstr("outrider: UNAVAILABLE: gone\n"));
}

TEST(GenerateCommandTest, AStreamThatBreaksSaysByWhichCommandItIsResumed) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.status = {grpc::StatusCode::UNAVAILABLE, "gone"};
  const ScriptedGenerationService service(script);
  Screen screen;
  GenerateFlags flags;
  flags.words = {"outrider", "generate", "-k", "2", "prompt"};
  EXPECT_EQ(Execute(service, flags, screen.Io()), kExitFailed);
  EXPECT_THAT(screen.err.str(),
              HasSubstr("to go on after these 4 tokens:\n"
                        "  outrider generate --seed 18446744073709551613 "
                        "--resume-model 0123abcd:float32:avx2 "
                        "--resume-tokens '0 1 2 3' --cache-salt secret "
                        "-k 2 prompt\n"));
  // What it has read is gone, and the words do not have it.
  flags.words = {"outrider", "generate", "--prompt-file", "-"};
  flags.prompt_file = "-";
  EXPECT_EQ(Execute(service, flags, screen.Io()), kExitFailed);
  EXPECT_THAT(screen.err.str(),
              HasSubstr("to go on after these 4 tokens, with the same standard "
                        "input as before:\n"));
}

TEST(GenerateCommandTest, ASaltOutOfAFileIsNotInTheCommandOfAResume) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.status = {grpc::StatusCode::UNAVAILABLE, "gone"};
  const ScriptedGenerationService service(script);
  GenerateFlags flags;
  flags.cache_salt = "@/run/salt";
  Screen same, other;
  EXPECT_EQ(Execute(service, flags, same.Io(),
                    {.prompt = "prompt", .cache_salt = "secret"}),
            kExitFailed);
  EXPECT_THAT(same.err.str(), HasSubstr(" --cache-salt @/run/salt"));
  EXPECT_THAT(same.err.str(), Not(HasSubstr("secret")));
  GenerateFlags as_json = flags;
  as_json.json = true;
  Screen json;
  EXPECT_EQ(Execute(service, as_json, json.Io(),
                    {.prompt = "prompt", .cache_salt = "secret"}),
            kExitFailed);
  const auto told = nlohmann::json::parse(json.out.str());
  EXPECT_EQ(told["resume"]["cache_salt"], "@/run/salt");
  // The coordinator said that it took "secret".
  EXPECT_EQ(Execute(service, flags, other.Io(),
                    {.prompt = "prompt", .cache_salt = "mine"}),
            kExitFailed);
  EXPECT_THAT(other.err.str(), HasSubstr(" --cache-salt secret"));
}

TEST(GenerateCommandTest, JsonOfAStreamThatBreaksHasWhatAResumeNeeds) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.status = {grpc::StatusCode::UNAVAILABLE, "gone"};
  const ScriptedGenerationService service(script);
  Screen screen;
  EXPECT_EQ(Execute(service, WithJson(), screen.Io()), kExitFailed);
  const auto json = nlohmann::json::parse(screen.out.str());
  EXPECT_EQ(json["finish_reason"], "failed");
  EXPECT_EQ(json["error"]["code"], "UNAVAILABLE");
  EXPECT_EQ(json["error"]["message"], "gone");
  EXPECT_EQ(json["resume"], nlohmann::json({{"seed", "18446744073709551613"},
                                            {"model", "0123abcd:float32:avx2"},
                                            {"tokens", "0 1 2 3"},
                                            {"cache_salt", "secret"}}));
  EXPECT_EQ(screen.err.str(), "outrider: UNAVAILABLE: gone\n");
}

TEST(GenerateCommandTest, AStreamWhoseModelIsGoneIsResumedOnThatModel) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.status = {grpc::StatusCode::ABORTED, "another model"};
  const ScriptedGenerationService service(script);
  Screen screen;
  EXPECT_EQ(Execute(service, GenerateFlags(), screen.Io()), kExitFailed);
  EXPECT_THAT(screen.err.str(),
              HasSubstr("--resume-model 0123abcd:float32:avx2 "));
}

TEST(GenerateCommandTest, WhatCannotBeResumedIsNotOfferedForIt) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.status = {grpc::StatusCode::INVALID_ARGUMENT, "no such rule"};
  const ScriptedGenerationService service(script);
  Screen text, json;
  EXPECT_EQ(Execute(service, GenerateFlags(), text.Io()), kExitFailed);
  EXPECT_THAT(text.err.str(), Not(HasSubstr("--resume-tokens")));
  EXPECT_EQ(Execute(service, WithJson(), json.Io()), kExitFailed);
  EXPECT_FALSE(nlohmann::json::parse(json.out.str()).contains("resume"));
}

TEST(GenerateCommandTest, WhatVerifiersDiedOfIsNotOfferedForAResume) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.status =
      ToGrpcStatus(WithErrorReason(absl::InternalError("died"), kPoisonReason));
  const ScriptedGenerationService service(script);
  Screen text;
  EXPECT_EQ(Execute(service, GenerateFlags(), text.Io()), kExitFailed);
  EXPECT_THAT(text.err.str(), HasSubstr("outrider: INTERNAL: died\n"));
  EXPECT_THAT(text.err.str(), Not(HasSubstr("--resume-tokens")));
}

TEST(GenerateCommandTest, ARefusedResumeIsNotAnsweredWithItself) {
  const ScriptedGenerationService service(
      {.status = {grpc::StatusCode::FAILED_PRECONDITION, "not this model"}});
  GenerationRequest resume = {.prompt = "prompt"};
  resume.seed = 1;
  resume.model = ModelIdentity{.weights_hash = "ab"};
  resume.delivered = TokenSeq{6};
  Screen screen;
  EXPECT_EQ(Execute(service, GenerateFlags(), screen.Io(), resume),
            kExitFailed);
  EXPECT_EQ(screen.err.str(),
            "outrider: FAILED_PRECONDITION: not this model\n");
}

TEST(GenerateCommandTest, ATimeoutIsACallThatFailed) {
  const ScriptedGenerationService service(
      {.updates = {StartUpdate()}, .waits_for_cancel = true});
  Screen screen;
  GenerateFlags flags;
  flags.target.timeout_seconds = 0.05;
  EXPECT_EQ(Execute(service, flags, screen.Io()), kExitFailed);
  EXPECT_THAT(screen.err.str(), HasSubstr("DEADLINE_EXCEEDED"));
}

TEST(GenerateCommandTest, AnInterruptCancelsPrintsTheSummaryAndExits130) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.waits_for_cancel = true;
  const ScriptedGenerationService service(script);
  Screen screen;
  GenerateFlags flags;
  flags.target.coordinator = service.address();
  Cancellation cancellation;
  std::jthread interrupt([&cancellation] { cancellation.Cancel(); });
  EXPECT_EQ(Generate(flags, {}, screen.Io(), cancellation), kExitInterrupted);
  EXPECT_THAT(screen.err.str(), Not(HasSubstr("outrider: ")));
}

// A screen whose reader presses Ctrl-C at the sight of this letter.
class InterruptedAt final : public std::stringbuf {
 public:
  InterruptedAt(char letter, Cancellation& cancellation)
      : letter_(letter), cancellation_(cancellation) {}

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (std::string(text, size).find(letter_) != std::string::npos) {
      cancellation_.Cancel();
    }
    return std::stringbuf::xsputn(text, size);
  }

  const char letter_;
  Cancellation& cancellation_;
};

TEST(GenerateCommandTest, WhatWasInterruptedSaysHowItGoesOn) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.waits_for_cancel = true;
  const ScriptedGenerationService service(script);
  Cancellation cancellation;
  InterruptedAt buffer('d', cancellation);
  std::ostream out(&buffer);
  std::istringstream in;
  std::ostringstream err;
  GenerateFlags flags;
  flags.target.coordinator = service.address();
  flags.words = {"outrider", "generate", "prompt"};
  EXPECT_EQ(Generate(flags, {.prompt = "prompt"},
                     {.in = in, .out = out, .err = err}, cancellation),
            kExitInterrupted);
  EXPECT_EQ(buffer.str(), "abcd");
  EXPECT_THAT(err.str(), HasSubstr("to go on after these 4 tokens:\n"));
  EXPECT_THAT(err.str(), HasSubstr("--resume-tokens '0 1 2 3'"));
}

TEST(GenerateCommandTest, OutputThatCannotBeWrittenIsAFailure) {
  const ScriptedGenerationService service(TwoRounds());
  Screen screen;
  screen.out.setstate(std::ios::badbit);
  EXPECT_EQ(Execute(service, GenerateFlags(), screen.Io()), kExitFailed);
  EXPECT_THAT(screen.err.str(), HasSubstr("cannot write"));
}

// A disk that is full once this letter comes.
class FullAt final : public std::stringbuf {
 public:
  explicit FullAt(char letter) : letter_(letter) {}

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (std::string(text, size).find(letter_) != std::string::npos) return 0;
    return std::stringbuf::xsputn(text, size);
  }

  const char letter_;
};

TEST(GenerateCommandTest, OutputThatFailsEndsTheStreamAndIsResumedAfterIt) {
  auto script = TwoRounds();
  script.updates.pop_back();
  script.waits_for_cancel = true;
  const ScriptedGenerationService service(script);
  FullAt buffer('d');
  std::ostream out(&buffer);
  Screen screen;
  GenerateFlags flags;
  flags.words = {"outrider", "generate", "prompt"};
  flags.target.timeout_seconds = 20;
  EXPECT_EQ(
      Execute(service, flags, {.in = screen.in, .out = out, .err = screen.err}),
      kExitFailed);
  EXPECT_EQ(buffer.str(), "abc");
  EXPECT_THAT(screen.err.str(),
              HasSubstr("outrider: DATA_LOSS: cannot write to the output\n"
                        "to go on after these 3 tokens:\n"));
  EXPECT_THAT(screen.err.str(), HasSubstr("--resume-tokens '0 1 2'"));
}

TEST(DescribeCommandTest, PrintsATableAndWhatIsMissing) {
  const ScriptedGenerationService service({});
  Screen screen;
  DescribeFlags flags;
  flags.target.coordinator = service.address();
  EXPECT_EQ(DescribeCommand(flags, screen.Io()), kExitOk);
  EXPECT_THAT(screen.out.str(), HasSubstr("verifier  demo-target  -"));
  EXPECT_THAT(screen.out.str(), HasSubstr("  cpu     avx2     4096"));
  EXPECT_THAT(screen.out.str(),
              HasSubstr("  rejection,block,coupled  full-bfloat16,tokens"));
  EXPECT_THAT(screen.out.str(),
              HasSubstr("verifier demo-target: 4 passes of 7.5 rows and 4.0 "
                        "sessions"));
  EXPECT_THAT(screen.out.str(),
              HasSubstr("a decode waited 1.50 ms for passes, a prefill 0.00 "
                        "ms. Now 0 sessions in 0 of 90 KV blocks"));
  EXPECT_THAT(screen.out.str(),
              HasSubstr("verifier demo-target on a GPU: 3.0 MiB taken, 0.5 MiB "
                        "of it by KV blocks; 4 graphs (1 captured late), "
                        "launched 50 times; 60 rows of logits answered, 7 "
                        "copied whole, 2 of these as the answer did not "
                        "decide\n"));
  EXPECT_THAT(screen.out.str(), HasSubstr("no drafter is ready"));
  EXPECT_THAT(screen.out.str(),
              HasSubstr("refused drafter: another tokenizer"));
  EXPECT_THAT(screen.out.str(), HasSubstr("no tokenizer"));
}

TEST(DescribeCommandTest, OutputThatCannotBeWrittenIsAFailure) {
  const ScriptedGenerationService service({});
  Screen screen;
  screen.out.setstate(std::ios::badbit);
  DescribeFlags flags;
  flags.target.coordinator = service.address();
  EXPECT_EQ(DescribeCommand(flags, screen.Io()), kExitFailed);
  EXPECT_THAT(screen.err.str(), HasSubstr("cannot write"));
}

TEST(DescribeCommandTest, WhereOneIsDownTheNextIsAsked) {
  const ScriptedGenerationService down(
      {.status = {grpc::StatusCode::UNAVAILABLE, "draining"}});
  const ScriptedGenerationService other({});
  Screen screen;
  DescribeFlags flags;
  flags.target.coordinator = down.address();
  flags.target.others = {other.address()};
  EXPECT_EQ(DescribeCommand(flags, screen.Io()), kExitOk);
  EXPECT_THAT(screen.out.str(), HasSubstr("verifier  demo-target  -"));
  EXPECT_EQ(screen.err.str(), "outrider: " + down.address() +
                                  " does not answer, asking the next: "
                                  "draining\n");
}

TEST(DescribeCommandTest, AFailedCallIsOneLineWithItsCode) {
  const ScriptedGenerationService service(
      {.status = {grpc::StatusCode::UNAVAILABLE, "draining"}});
  Screen screen;
  DescribeFlags flags;
  flags.target.coordinator = service.address();
  EXPECT_EQ(DescribeCommand(flags, screen.Io()), kExitFailed);
  EXPECT_EQ(screen.err.str(), "outrider: UNAVAILABLE: draining\n");
}

}  // namespace
}  // namespace outrider::client
