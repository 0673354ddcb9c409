// SPDX-License-Identifier: Apache-2.0
#include "bench/command/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace outrider::bench {
namespace {

// Takes away what stands in the line.
constexpr char kClearLine[] = "\r\x1b[K";

std::string Name(const Point& point) {
  return absl::StrFormat("RTT %g ms, %s, K = %s, repeat %d", point.cell.rtt_ms,
                         point.cell.load.ToString(),
                         point.cell.drafting().ToString(), point.repeat + 1);
}

}  // namespace

std::string Duration(double seconds) {
  const int64_t whole = std::llround(seconds);
  if (whole < 100) return absl::StrCat(whole, " s");
  const int64_t minutes = (whole + 30) / 60;
  if (minutes < 100) return absl::StrCat(minutes, " min");
  return absl::StrCat(minutes / 60, " h ", minutes % 60, " min");
}

Progress::Progress(const client::CommandIo& io, int num_points, double seconds)
    : io_(io), num_points_(num_points), estimated_seconds_(seconds) {}

std::string Progress::Color(const char* code) const {
  return io_.err_is_terminal && !io_.no_color ? code : "";
}

void Progress::Begin(const Point& point) {
  if (!io_.err_is_terminal) return;
  constexpr int kWidth = 24;
  const double share = static_cast<double>(num_done_) / num_points_;
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_)
          .count();
  // The estimate counts until something was measured.
  const double left = num_done_ == 0
                          ? estimated_seconds_
                          : elapsed / num_done_ * (num_points_ - num_done_);
  const int full = static_cast<int>(kWidth * share);
  io_.err << kClearLine << "[" << std::string(full, '#')
          << std::string(kWidth - full, '-') << "] " << num_done_ << "/"
          << num_points_ << ", " << Duration(left) << " left: " << Name(point)
          << std::flush;
}

void Progress::Print(const std::string& line) {
  ++num_done_;
  if (io_.err_is_terminal) io_.err << kClearLine;
  io_.err << absl::StrFormat("%*d/%d  ",
                             static_cast<int>(absl::StrCat(num_points_).size()),
                             num_done_, num_points_)
          << line << std::endl;
}

void Progress::End(const Measurement& measurement) {
  const double speedup = measurement.speedup();
  const double network_speedup = measurement.network_speedup();
  const char* const code = measurement.num_failures > 0 ? "\x1b[31m"
                           : speedup >= 1               ? "\x1b[32m"
                                                        : "\x1b[33m";
  std::string line = absl::StrCat(Name(measurement.point), ": ");
  if (speedup > 0) {
    absl::StrAppendFormat(&line, "%s%.2fx plain in verifier%s, ", Color(code),
                          speedup, Color("\x1b[0m"));
  }
  if (network_speedup > 0) {
    absl::StrAppendFormat(&line, "%.2fx K = 0, ", network_speedup);
  }
  absl::StrAppendFormat(&line, "%.2f ms/token, %.2f tokens/round, %d requests",
                        measurement.token_ms.mean, measurement.tokens_per_round,
                        measurement.num_requests);
  if (const AheadCounts& ahead = measurement.counts.ahead;
      ahead.num_asked() > 0) {
    absl::StrAppendFormat(
        &line, ", drafted ahead: %.0f %% hits, %.0f %% after a refusal",
        100 * ahead.hit_share(), 100 * ahead.hit_share_after_refusal());
  }
  if (measurement.num_failures > 0) {
    absl::StrAppend(&line, ", ", measurement.num_failures, " FAILED (",
                    measurement.first_failure, ")");
  }
  if (measurement.ran_out_of_prompts) {
    line += ", out of prompts: ended early";
  }
  Print(line);
}

void Progress::Skip(const Point& point, const std::string& why) {
  Print(absl::StrCat(Name(point), ": not measured: ", why));
}

void Progress::Finish() {
  if (io_.err_is_terminal) io_.err << kClearLine << std::flush;
}

}  // namespace outrider::bench
