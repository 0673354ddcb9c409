// SPDX-License-Identifier: Apache-2.0
#include "client/generate_command.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "client/generation_report.h"
#include "client/interrupt_watcher.h"
#include "client/resume_command.h"
#include "client/resuming_stream.h"
#include "client/token_printer.h"
#include "core/base/status_macros.h"

namespace outrider::client {
namespace {

using Clock = std::chrono::steady_clock;

TokenPrinter::Style StyleOf(const GenerateFlags& flags, const CommandIo& io) {
  const bool wants_color =
      flags.color == "always" ||
      (flags.color == "auto" && io.out_is_terminal && !io.no_color);
  if (wants_color) return TokenPrinter::Style::kMarked;
  return io.out_is_terminal ? TokenPrinter::Style::kHarmless
                            : TokenPrinter::Style::kPlain;
}

// One generation on its way from the coordinator to the screen.
class Run {
 public:
  Run(const GenerateFlags& flags, const CommandIo& io)
      : flags_(flags),
        io_(io),
        style_(StyleOf(flags, io)),
        printer_(io.out, style_) {}

  // Prints what comes until the end.
  absl::Status Follow(const GenerationRequest& request,
                      Cancellation& cancellation);
  // What there is to say of the whole.
  void PrintEnd(const absl::Status& status, bool is_interrupted);
  // How a stream that broke with this status is resumed, if it can be.
  void PrintResume(const absl::Status& status);

 private:
  absl::Status ReadAll(ResumingStream& stream);
  // A request that no stream came of says all that it would be resumed by.
  bool OffersResume(const absl::Status& status) const {
    return report_.start.has_value() && CanResume(rest_, status);
  }
  ResumeFlags FlagsOfResume() const;
  void PrintSummary();

  const GenerateFlags& flags_;
  const CommandIo& io_;
  const TokenPrinter::Style style_;
  TokenPrinter printer_;
  GenerationReport report_;
  std::string asked_salt_;
  GenerationRequest rest_ = {};  // what a resume would ask for
  size_t num_unwritten_ = 0;     // tokens of the message that found no output
};

absl::Status Run::Follow(const GenerationRequest& request,
                         Cancellation& cancellation) {
  asked_salt_ = request.cache_salt;
  if (const auto* text = std::get_if<std::string>(&request.prompt);
      text != nullptr && !flags_.wants_json()) {
    printer_.PrintPrompt(*text);
  }
  ResumingStream stream(
      request,
      {.coordinators = CoordinatorsOf(flags_.target),
       .tls = flags_.target.tls,
       .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
           std::chrono::duration<double>(flags_.target.timeout_seconds))});
  const uint64_t registration =
      cancellation.OnCancel([&stream] { stream.Cancel(); });
  absl::Status status = ReadAll(stream);
  cancellation.Forget(registration);
  rest_ = stream.ResumeRequest();
  if (num_unwritten_ > 0 && rest_.delivered.has_value()) {
    rest_.delivered->resize(rest_.delivered->size() - num_unwritten_);
  }
  return status;
}

absl::Status Run::ReadAll(ResumingStream& stream) {
  const Clock::time_point begin = Clock::now();
  while (true) {
    OUTRIDER_ASSIGN_OR_RETURN(const auto update, stream.Next());
    if (!update.has_value()) return absl::OkStatus();
    report_.Add(*update, Clock::now() - begin);
    if (flags_.wants_json()) continue;
    printer_.Print(*update);
    // Nobody would read the rest. What has finished needs no other end.
    if (!io_.out && !update->finish.has_value()) {
      num_unwritten_ = update->tokens.size();
      return CannotWrite();
    }
  }
}

void Run::PrintEnd(const absl::Status& status, bool is_interrupted) {
  if (!flags_.wants_json()) {
    PrintSummary();
  } else {
    JsonOptions options = {.with_rounds = flags_.json_rounds,
                           .is_for_terminal = io_.out_is_terminal};
    if (!is_interrupted) options.failure = status;
    if (!status.ok() && OffersResume(status)) {
      options.resume = FlagsOfResume();
    }
    io_.out << ToJson(report_, options) << "\n";
  }
  io_.out.flush();
}

ResumeFlags Run::FlagsOfResume() const {
  ResumeFlags resume = ToResumeFlags(rest_);
  // A salt out of a file stays there, unless the coordinator took another.
  if (absl::StartsWith(flags_.cache_salt.value_or(""), "@") &&
      rest_.cache_salt == asked_salt_) {
    resume.salt = *flags_.cache_salt;
  }
  return resume;
}

void Run::PrintResume(const absl::Status& status) {
  if (flags_.wants_json() || !OffersResume(status)) return;
  const ResumeFlags resume = FlagsOfResume();
  const bool reads_input = flags_.prompt_file == "-" || resume.salt == "@-";
  io_.err << "to go on after these " << rest_.delivered->size() << " tokens"
          << (NeedsBash(resume) ? ", in bash" : "")
          << (reads_input ? ", with the same standard input as before" : "")
          << ":\n  " << ResumeCommand(flags_.words, resume) << "\n";
}

void Run::PrintSummary() {
  const bool is_seen =
      io_.out_is_terminal || style_ != TokenPrinter::Style::kPlain;
  if (!printer_.at_line_start()) {
    // A file or a pipe gets the text alone: there the line ends elsewhere.
    (is_seen ? io_.out : io_.err) << "\n" << std::flush;
  }
  if (!report_.start.has_value()) return;
  if (io_.err_is_terminal && style_ == TokenPrinter::Style::kMarked) {
    io_.err << "\n" << TokenPrinter::Legend(style_) << "\n";
  }
  io_.err << ToSummary(report_);
}

}  // namespace

int Generate(const GenerateFlags& flags, const GenerationRequest& request,
             const CommandIo& io, Cancellation& cancellation) {
  Run run(flags, io);
  const absl::Status status = run.Follow(request, cancellation);
  const bool is_interrupted = !status.ok() && cancellation.cancelled();
  run.PrintEnd(status, is_interrupted);
  if (is_interrupted) {
    run.PrintResume(status);
    return kExitInterrupted;
  }
  if (!status.ok()) {
    const int exit_status = FailCall(io.err, status);
    run.PrintResume(status);
    return exit_status;
  }
  return Finish(io, kExitOk);
}

int GenerateCommand(const GenerateFlags& flags) {
  const CommandIo io = StandardIo();
  const absl::StatusOr<GenerationRequest> request = ToRequest(flags, io.in);
  if (!request.ok()) return FailUsage(io.err, request.status());
  Cancellation cancellation;
  // Not before the prompt was read: Ctrl-C ends a wait for standard input.
  const InterruptWatcher watcher(cancellation);
  return Generate(flags, *request, io, cancellation);
}

}  // namespace outrider::client
