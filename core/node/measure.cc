// SPDX-License-Identifier: Apache-2.0
#include "core/node/measure.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/solo_session.h"
#include "core/sampling/coins.h"
#include "core/sampling/draft_options.h"
#include "core/sampling/process.h"
#include "core/sampling/target_row.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

// A round is elsewhere for about so long.
constexpr std::chrono::milliseconds kPause(1);

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One session in front of the model, and the tokens it feeds.
class Bench {
 public:
  Bench(SoloSession session, const MeasureOptions& options)
      : session_(std::move(session)), options_(options) {
    // Content does not matter for time; variety avoids a degenerate softmax.
    const int length = options.context_length + options.max_rows;
    for (int i = 0; i < length; ++i) {
      tokens_.push_back((i * 7919 + 13) % options.vocab_size);
    }
    const int64_t size = std::min(kDefaultSupportSize, options.vocab_size);
    for (int64_t i = 0; i < size; ++i) {
      support_.push_back(static_cast<TokenId>(i * options.vocab_size / size));
    }
  }

  absl::StatusOr<LogitRows> Prefill() {
    return session_.Extend(
        0, absl::MakeConstSpan(tokens_).first(options_.context_length), 1);
  }
  absl::StatusOr<LogitRows> Rows(int first, int num_rows) {
    return Run(first, num_rows, {});
  }
  // The same with each row drawn from, as it is where a node serves: all but
  // the last judge a draft, and so are asked about its row's support.
  absl::StatusOr<LogitRows> DrawnRows(int num_rows) {
    std::vector<RowQuestion> questions(num_rows, Draws(1, support_));
    questions.back() = Draws(1);
    return Run(0, num_rows, questions);
  }
  // The token drawn at the temperature after one that follows the prefill and
  // `num_decoded` tokens more.
  absl::StatusOr<TokenId> Decode(int num_decoded, TokenId token,
                                 double temperature) {
    const RowQuestion question = Draws(temperature);
    OUTRIDER_ASSIGN_OR_RETURN(
        const LogitRows row,
        session_.Extend(options_.context_length + num_decoded, {&token, 1}, 1,
                        {&question, 1}));
    const RowView view = row.View(0);
    if (view.answer != nullptr) {
      const auto& draw = std::get<DrawAnswer>(*view.answer);
      if (draw.drawn.has_value()) return *draw.drawn;
      return absl::InternalError("a row of no token");
    }
    return Draw(view.logits.first(options_.vocab_size), num_decoded,
                temperature);
  }

 private:
  // A verifier does the same where there are no drafts.
  absl::StatusOr<TokenId> Draw(absl::Span<const float> logits, int position,
                               double temperature) {
    if (temperature == 0) return FindArgmax(logits).argmax;
    OUTRIDER_ASSIGN_OR_RETURN(
        Distribution p, Process(logits, {.temperature = temperature}, {}));
    return TargetRow::FromDense(std::move(p), /*support=*/{}, position, coins_)
        .drawn_token();
  }
  RowQuestion Draws(double temperature,
                    absl::Span<const TokenId> support = {}) const {
    return {.vocab_size = options_.vocab_size,
            .temperature = temperature,
            .what = DrawQuestion{.support = support, .uniform = 0.5}};
  }
  absl::StatusOr<LogitRows> Run(int first, int num_rows,
                                absl::Span<const RowQuestion> questions) {
    return session_.Extend(options_.context_length + first,
                           absl::MakeConstSpan(tokens_).subspan(
                               options_.context_length + first, num_rows),
                           num_rows, questions);
  }

  SoloSession session_;
  const MeasureOptions& options_;
  std::vector<TokenId> tokens_;
  // A draft's row has these: more tokens than rows of large models, and fewer
  // than those of the demo pair (docs/adr/0003-draft-rows-by-mass.md).
  std::vector<TokenId> support_;
  Coins coins_{/*seed=*/1};
};

absl::Status MeasureRows(Bench& bench, const MeasureOptions& options,
                         ModelMeasurement& result) {
  std::vector<std::vector<double>> seconds(options.max_rows);
  for (int repeat = -3; repeat < options.num_repeats; ++repeat) {  // 3 warm up
    for (int rows = 1; rows <= options.max_rows; ++rows) {
      const Clock::time_point start = Clock::now();
      OUTRIDER_RETURN_IF_ERROR(bench.DrawnRows(rows).status());
      if (repeat >= 0) seconds[rows - 1].push_back(SecondsSince(start));
    }
  }
  for (std::vector<double>& sample : seconds) {
    result.rows_seconds.push_back(Median(std::move(sample)));
  }
  return absl::OkStatus();
}

absl::Status MeasurePaused(Bench& bench, const MeasureOptions& options,
                           ModelMeasurement& result) {
  std::vector<double> seconds;
  for (int repeat = 0; repeat < options.num_repeats; ++repeat) {
    std::this_thread::sleep_for(kPause);
    const Clock::time_point start = Clock::now();
    OUTRIDER_RETURN_IF_ERROR(bench.DrawnRows(1).status());
    seconds.push_back(SecondsSince(start));
  }
  result.paused_seconds = Median(std::move(seconds));
  return absl::OkStatus();
}

// It looks at bits, as no comparison of numbers sees a NaN.
void CompareLogits(float together, float alone, ModelMeasurement& result) {
  if (std::bit_cast<uint32_t>(together) == std::bit_cast<uint32_t>(alone)) {
    return;
  }
  result.rows_depend_on_count = true;
  const double difference = std::abs(double{together} - double{alone});
  result.max_logit_difference =
      std::isnan(difference)
          ? std::numeric_limits<double>::infinity()
          : std::max(result.max_logit_difference, difference);
}

absl::Status CompareRows(Bench& bench, const MeasureOptions& options,
                         ModelMeasurement& result) {
  std::vector<LogitRows> one_by_one;
  for (int i = 0; i < options.max_rows; ++i) {
    OUTRIDER_ASSIGN_OR_RETURN(LogitRows row, bench.Rows(i, 1));
    one_by_one.push_back(std::move(row));
  }
  for (int rows = 2; rows <= options.max_rows; ++rows) {
    OUTRIDER_ASSIGN_OR_RETURN(const LogitRows together, bench.Rows(0, rows));
    for (int i = 0; i < rows; ++i) {
      for (int v = 0; v < options.vocab_size; ++v) {
        CompareLogits(together.Row(i)[v], one_by_one[i].Row(0)[v], result);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> PlainTokensPerSecond(Bench& bench,
                                            const MeasureOptions& options,
                                            double temperature) {
  std::vector<double> tokens_per_second;
  for (int repeat = 0; repeat < 3; ++repeat) {
    OUTRIDER_ASSIGN_OR_RETURN(const LogitRows row, bench.Prefill());
    TokenId token = FindArgmax(row.Row(0).first(options.vocab_size)).argmax;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < options.num_decoded; ++i) {
      OUTRIDER_ASSIGN_OR_RETURN(token, bench.Decode(i, token, temperature));
    }
    tokens_per_second.push_back(options.num_decoded / SecondsSince(start));
  }
  return Median(std::move(tokens_per_second));
}

}  // namespace

absl::StatusOr<ModelMeasurement> MeasureModel(CausalLm& model,
                                              const MeasureOptions& options) {
  MeasureOptions fitted = options;
  const int room = model.info().context_length;
  OUTRIDER_RETURN_IF_ERROR(CheckContext(room, 1 + options.max_rows));
  fitted.num_decoded = std::min(options.num_decoded, room / 2);
  fitted.context_length =
      std::min(options.context_length,
               room - std::max(fitted.num_decoded, options.max_rows));
  ModelMeasurement result;
  const int length =
      fitted.context_length + std::max(fitted.num_decoded, fitted.max_rows);
  OUTRIDER_ASSIGN_OR_RETURN(SoloSession session,
                            SoloSession::Open(model, length));
  Bench bench(std::move(session), fitted);
  OUTRIDER_RETURN_IF_ERROR(bench.Prefill().status());
  OUTRIDER_RETURN_IF_ERROR(MeasureRows(bench, fitted, result));
  OUTRIDER_RETURN_IF_ERROR(MeasurePaused(bench, fitted, result));
  OUTRIDER_RETURN_IF_ERROR(CompareRows(bench, fitted, result));
  OUTRIDER_ASSIGN_OR_RETURN(result.plain_tokens_per_second,
                            PlainTokensPerSecond(bench, fitted, 0));
  OUTRIDER_ASSIGN_OR_RETURN(result.plain_sampled_tokens_per_second,
                            PlainTokensPerSecond(bench, fitted, 1));
  return result;
}

std::string ToText(const ModelMeasurement& measurement, const ModelInfo& info) {
  std::string text = absl::StrFormat(
      "%s, %s on %s, kernels %s\n\n"
      "rows  T(rows)    T(rows)/T(1)\n",
      info.name, info.dtype, info.device, info.numerics);
  for (size_t i = 0; i < measurement.rows_seconds.size(); ++i) {
    text += absl::StrFormat(
        "%4d  %7.3f ms  %5.2f\n", i + 1, 1e3 * measurement.rows_seconds[i],
        measurement.rows_seconds[i] / measurement.rows_seconds[0]);
  }
  text += absl::StrFormat(
      "   1  %7.3f ms  %5.2f  after a pause of %d ms, as rounds have them\n",
      1e3 * measurement.paused_seconds,
      measurement.paused_seconds / measurement.rows_seconds[0],
      static_cast<int>(kPause.count()));
  text += absl::StrFormat(
      "\nplain decoding in this process: %.1f tokens/s, %.1f at temperature "
      "1\n",
      measurement.plain_tokens_per_second,
      measurement.plain_sampled_tokens_per_second);
  text += measurement.rows_depend_on_count
              ? absl::StrFormat(
                    "rows depend on the row count: logits differ by up to "
                    "%.2g\n",
                    measurement.max_logit_difference)
              : "rows do not depend on the row count (bit for bit)\n";
  return text;
}

std::string ToJson(const ModelMeasurement& measurement, const ModelInfo& info) {
  std::vector<double> rows_ms;
  for (const double seconds : measurement.rows_seconds) {
    rows_ms.push_back(1e3 * seconds);
  }
  return nlohmann::json(
             {{"model", info.name},
              {"dtype", info.dtype},
              {"device", info.device},
              {"kernels", info.numerics},
              {"rows_ms", rows_ms},
              {"paused_row_ms", 1e3 * measurement.paused_seconds},
              {"plain_tokens_per_second", measurement.plain_tokens_per_second},
              {"plain_sampled_tokens_per_second",
               measurement.plain_sampled_tokens_per_second},
              {"rows_depend_on_count", measurement.rows_depend_on_count},
              {"max_logit_difference", measurement.max_logit_difference}})
             // A folder's name need not be UTF-8.
             .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

absl::Status CheckContext(int context_length, int least) {
  if (context_length >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model's context of ", context_length,
      " tokens is too short to be measured: at least ", least, " are needed"));
}

absl::Status Print(const std::string& text) {
  if (std::cout << text << std::flush) return absl::OkStatus();
  return absl::UnavailableError("cannot write to the output");
}

absl::Status PrintModelMeasurement(const NodeFlags& flags,
                                   LoadedModel& loaded) {
  MeasureOptions options = {.vocab_size = loaded.description.vocab_size};
  // A timing model takes its time, and the same each time.
  if (flags.simulation.enabled) {
    options.num_repeats = 3;
    options.num_decoded = 16;
  }
  CausalLm& model = *loaded.model;
  OUTRIDER_ASSIGN_OR_RETURN(const ModelMeasurement measurement,
                            MeasureModel(model, options));
  return Print(flags.json ? ToJson(measurement, model.info())
                          : ToText(measurement, model.info()));
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + (values.size() - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace outrider
