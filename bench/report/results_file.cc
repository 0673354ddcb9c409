// SPDX-License-Identifier: Apache-2.0
#include "bench/report/results_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "results.jsonl";

// Names of files and what calls say need not be UTF-8.
std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ToJson(const Spread& spread) {
  return {{"p50", spread.p50},
          {"p90", spread.p90},
          {"p99", spread.p99},
          {"mean", spread.mean}};
}

Spread ToSpread(const Json& json) {
  return {.p50 = json.at("p50"),
          .p90 = json.at("p90"),
          .p99 = json.at("p99"),
          .mean = json.at("mean")};
}

Json ToJson(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

std::optional<double> ToOptional(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<double>();
}

Json ToJson(const RoundSplit& split) {
  return {{"draft_ms", split.draft_ms},
          {"drafter_network_ms", split.drafter_network_ms},
          {"verify_ms", split.verify_ms},
          {"verifier_network_ms", split.verifier_network_ms},
          {"wait_ms", split.wait_ms},
          {"rest_ms", split.rest_ms}};
}

RoundSplit ToSplit(const Json& json) {
  return {.draft_ms = json.at("draft_ms"),
          .drafter_network_ms = json.at("drafter_network_ms"),
          .verify_ms = json.at("verify_ms"),
          .verifier_network_ms = json.at("verifier_network_ms"),
          .wait_ms = json.at("wait_ms"),
          .rest_ms = json.at("rest_ms")};
}

Json ToJson(const Counts& counts) {
  return {{"rounds", counts.num_rounds},
          {"draft_tokens", counts.num_drafted},
          {"accepted_tokens", counts.num_accepted},
          {"ahead_hits", counts.ahead.num_hits},
          {"ahead_misses", counts.ahead.num_misses},
          {"ahead_after_refusal", counts.ahead.num_after_refusal},
          {"ahead_hits_after_refusal", counts.ahead.num_hits_after_refusal},
          {"draft_tokens_wasted", counts.ahead.num_wasted},
          {"drafter_bytes", counts.drafter.num_bytes},
          {"drafter_messages", counts.drafter.num_messages},
          {"verifier_bytes", counts.verifier.num_bytes},
          {"verifier_messages", counts.verifier.num_messages}};
}

Counts ToCounts(const Json& json) {
  return {
      .num_rounds = json.at("rounds"),
      .num_drafted = json.at("draft_tokens"),
      .num_accepted = json.at("accepted_tokens"),
      .ahead = {.num_hits = json.at("ahead_hits"),
                .num_misses = json.at("ahead_misses"),
                .num_after_refusal = json.at("ahead_after_refusal"),
                .num_hits_after_refusal = json.at("ahead_hits_after_refusal"),
                .num_wasted = json.at("draft_tokens_wasted")},
      .drafter = {.num_bytes = json.at("drafter_bytes"),
                  .num_messages = json.at("drafter_messages")},
      .verifier = {.num_bytes = json.at("verifier_bytes"),
                   .num_messages = json.at("verifier_messages")}};
}

int ToK(const Json& json) { return json == "auto" ? kAutoK : json.get<int>(); }

Schedule ToSchedule(const Json& json) {
  return ScheduleNames().at(json.get<std::string>());
}

// nlohmann's exceptions stay here.
Measurement ToMeasurement(const Json& json) {
  const Json& load = json.at("load");
  return {.point = {.cell = {.rtt_ms = json.at("rtt_ms"),
                             .load = {.concurrency = load.at("concurrency"),
                                      .rate = load.at("rate")},
                             .schedule = ToSchedule(json.at("schedule")),
                             .k = ToK(json.at("k"))},
                    .repeat = json.at("repeat")},
          .origin = {.is_simulated = json.at("simulated"),
                     .machine = json.at("machine"),
                     .machine_load = json.at("machine_load"),
                     .date = json.at("date"),
                     .commit = json.at("commit")},
          .num_requests = json.at("requests"),
          .num_failures = json.at("failures"),
          .first_failure = json.at("first_failure"),
          .num_tokens = json.at("tokens"),
          .num_rounds = json.at("rounds"),
          .counts = ToCounts(json.at("counts")),
          .wall_seconds = json.at("wall_seconds"),
          .mean_in_flight = json.at("mean_in_flight"),
          .first_token_ms = ToSpread(json.at("time_to_first_token_ms")),
          .token_ms = ToSpread(json.at("time_per_output_token_ms")),
          .request_ms = ToSpread(json.at("end_to_end_ms")),
          .tokens_per_second = json.at("tokens_per_second"),
          .tokens_per_second_per_user = json.at("tokens_per_second_per_user"),
          .offered = json.at("offered_by_position").get<std::vector<int>>(),
          .accepted = json.at("accepted_by_position").get<std::vector<int>>(),
          .tokens_per_round = json.at("tokens_per_round"),
          .drafter_bytes_per_token = json.at("drafter_bytes_per_token"),
          .verifier_bytes_per_token = json.at("verifier_bytes_per_token"),
          .drafter_messages_per_token = json.at("drafter_messages_per_token"),
          .verifier_messages_per_token = json.at("verifier_messages_per_token"),
          .split = ToSplit(json.at("round_split")),
          .num_draft_failures = json.at("draft_failures"),
          .num_misses = json.at("misses"),
          .ran_out_of_prompts = json.at("ran_out_of_prompts"),
          .verifier_rtt_ms = ToOptional(json.at("achieved_verifier_rtt_ms")),
          .drafter_rtt_ms = ToOptional(json.at("achieved_drafter_rtt_ms")),
          .model_draft_step_ms = json.at("model_draft_step_ms"),
          .model_verify_ms = json.at("model_verify_ms"),
          .plain_token_ms = json.at("plain_in_verifier_token_ms"),
          .plain_network_token_ms = json.at("plain_same_network_token_ms"),
          .plain_network_tokens_per_second =
              json.at("plain_same_network_tokens_per_second")};
}

}  // namespace

std::string Configuration::Fingerprint() const {
  Json json = Json::array();
  for (const auto& [name, value] : binding) json.push_back({name, value});
  Sha256 hash;
  hash.Update(TextOf(json));
  return hash.HexDigest().substr(0, 16);
}

std::string ToJsonLine(const Measurement& m, const std::string& fingerprint) {
  const Cell& cell = m.point.cell;
  const Json json = {
      {"configuration", fingerprint},
      {"rtt_ms", cell.rtt_ms},
      {"schedule", NameOf(cell.schedule)},
      {"k", cell.k == kAutoK ? Json("auto") : Json(cell.k)},
      {"load",
       {{"concurrency", cell.load.concurrency}, {"rate", cell.load.rate}}},
      {"repeat", m.point.repeat},
      {"simulated", m.origin.is_simulated},
      {"machine", m.origin.machine},
      {"machine_load", m.origin.machine_load},
      {"date", m.origin.date},
      {"commit", m.origin.commit},
      {"speedup_over_plain_in_verifier", ToJson(OrNone(m.speedup()))},
      {"speedup_over_k0_same_network", ToJson(OrNone(m.network_speedup()))},
      {"requests", m.num_requests},
      {"failures", m.num_failures},
      {"first_failure", m.first_failure},
      {"tokens", m.num_tokens},
      {"rounds", m.num_rounds},
      {"counts", ToJson(m.counts)},
      {"wall_seconds", m.wall_seconds},
      {"mean_in_flight", m.mean_in_flight},
      {"time_to_first_token_ms", ToJson(m.first_token_ms)},
      {"time_per_output_token_ms", ToJson(m.token_ms)},
      {"end_to_end_ms", ToJson(m.request_ms)},
      {"tokens_per_second", m.tokens_per_second},
      {"tokens_per_second_per_user", m.tokens_per_second_per_user},
      {"offered_by_position", m.offered},
      {"accepted_by_position", m.accepted},
      {"tokens_per_round", m.tokens_per_round},
      {"drafter_bytes_per_token", m.drafter_bytes_per_token},
      {"verifier_bytes_per_token", m.verifier_bytes_per_token},
      {"drafter_messages_per_token", m.drafter_messages_per_token},
      {"verifier_messages_per_token", m.verifier_messages_per_token},
      {"round_split", ToJson(m.split)},
      {"draft_failures", m.num_draft_failures},
      {"misses", m.num_misses},
      {"ran_out_of_prompts", m.ran_out_of_prompts},
      {"achieved_verifier_rtt_ms", ToJson(m.verifier_rtt_ms)},
      {"achieved_drafter_rtt_ms", ToJson(m.drafter_rtt_ms)},
      {"model_draft_step_ms", m.model_draft_step_ms},
      {"model_verify_ms", m.model_verify_ms},
      {"plain_in_verifier_token_ms", m.plain_token_ms},
      {"plain_same_network_token_ms", m.plain_network_token_ms},
      {"plain_same_network_tokens_per_second",
       m.plain_network_tokens_per_second}};
  return TextOf(json);
}

absl::StatusOr<Measurement> FromJsonLine(const std::string& line,
                                         const std::string& fingerprint) {
  try {
    const Json json = Json::parse(line);
    if (json.at("configuration") != fingerprint) {
      return absl::InvalidArgumentError("is of another configuration");
    }
    return ToMeasurement(json);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError("is no result of this program");
  }
}

ResultsFile::ResultsFile(std::string folder, std::string fingerprint)
    : folder_(std::move(folder)), fingerprint_(std::move(fingerprint)) {}

absl::StatusOr<std::unique_ptr<ResultsFile>> ResultsFile::Open(
    const std::string& folder, const Configuration& configuration,
    bool resume) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = absl::StrCat(folder, "/", kName);
  // A run that measured nothing leaves an empty file.
  const uintmax_t num_bytes = std::filesystem::file_size(path, error);
  if (!error && num_bytes > 0 && !resume) {
    return absl::AlreadyExistsError(absl::StrCat(
        "--out: \"", folder,
        "\" has results already: pass --resume to go on with them, or another "
        "folder"));
  }
  // Opening to append makes the file: that it can be written is known before
  // anything is measured.
  if (!std::ofstream(path, std::ios::app)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "--out: cannot write to \"", folder, "\": ", std::strerror(errno)));
  }
  std::unique_ptr<ResultsFile> file(
      new ResultsFile(folder, configuration.Fingerprint()));
  OUTRIDER_RETURN_IF_ERROR(file->ReadOld());
  return file;
}

absl::Status ResultsFile::ReadOld() {
  const std::string path = absl::StrCat(folder_, "/", kName);
  std::ifstream file(path);
  std::string line;
  uintmax_t num_good_bytes = 0;
  for (int number = 1; std::getline(file, line); ++number) {
    // A last line without its newline was being written when the run ended.
    if (file.eof()) {
      std::error_code error;
      std::filesystem::resize_file(path, num_good_bytes, error);
      break;
    }
    num_good_bytes += line.size() + 1;
    absl::StatusOr<Measurement> measurement = FromJsonLine(line, fingerprint_);
    if (!measurement.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--resume: line ", number, " of \"", folder_, "/", kName, "\" ",
          measurement.status().message(),
          ": repeat the flags of that run, or pass another folder"));
    }
    Insert(*measurement);
  }
  return absl::OkStatus();
}

bool ResultsFile::Has(const Point& point) const {
  return std::any_of(measurements_.begin(), measurements_.end(),
                     [&point](const Measurement& m) {
                       return m.point == point && m.num_failures == 0;
                     });
}

const Measurement* ResultsFile::Find(const Point& point) const {
  for (const Measurement& m : measurements_) {
    if (m.point == point) return &m;
  }
  return nullptr;
}

Baselines ResultsFile::BaselinesOf(const Point& point) const {
  Point plain = {.cell = {.rtt_ms = point.cell.rtt_ms, .load = point.cell.load},
                 .repeat = point.repeat};
  Baselines baselines = {.plain = Find(plain)};
  plain.cell.load = {};
  baselines.alone = Find(plain);
  return baselines;
}

void ResultsFile::Insert(const Measurement& measurement) {
  std::erase_if(measurements_, [&measurement](const Measurement& old) {
    return old.point == measurement.point;
  });
  measurements_.push_back(measurement);
}

absl::Status ResultsFile::Append(const Measurement& measurement) {
  std::ofstream file(absl::StrCat(folder_, "/", kName), std::ios::app);
  file << ToJsonLine(measurement, fingerprint_) << "\n" << std::flush;
  if (!file) {
    return absl::DataLossError(
        absl::StrCat("cannot write to ", folder_, "/", kName));
  }
  Insert(measurement);
  return absl::OkStatus();
}

absl::Status ResultsFile::Write(const std::string& name,
                                const std::string& text) const {
  std::ofstream file(absl::StrCat(folder_, "/", name));
  file << text << std::flush;
  if (!file) {
    return absl::DataLossError(
        absl::StrCat("cannot write to ", folder_, "/", name));
  }
  return absl::OkStatus();
}

}  // namespace outrider::bench
