// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/row_scorer.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/device_event.h"
#include "core/cuda_model/device_question.h"

namespace outrider {
namespace {

constexpr size_t kArrayAlignment = 256;

// A token may be on a support and be scored besides.
int MaxTokensOf(int vocab_size) {
  return std::min(static_cast<int>(kMaxAskedTokens), 2 * vocab_size);
}
int MaxTopOf(int vocab_size) { return std::min(kMaxTopLogits, vocab_size); }

// A kernel reads where these say: a wrong one would cost the device.
template <typename Items, typename TokenOf>
bool AreTokens(const Items& items, int vocab_size, const TokenOf& token_of) {
  TokenId least = 0;
  for (const auto& item : items) {
    const TokenId token = token_of(item);
    if (token < least || token >= vocab_size) return false;
    least = token + 1;
  }
  return static_cast<int>(items.size()) <= MaxTokensOf(vocab_size);
}

bool AreTokens(absl::Span<const TokenId> tokens, int vocab_size) {
  return AreTokens(tokens, vocab_size, [](TokenId token) { return token; });
}

bool AreMoves(const LogitMoves& moves, double temperature, int vocab_size) {
  // Who is greatest is compared in float32, which penalties may round alike.
  if (temperature <= 0 && !moves.tokens.empty()) return false;
  return AreTokens(moves.tokens, vocab_size,
                   [](const MovedToken& moved) { return moved.token; });
}

bool IsTop(const TopQuestion& top, int vocab_size) {
  return top.count >= 1 && top.count <= kMaxTopLogits &&
         AreTokens(top.tokens, vocab_size);
}

bool IsDraw(const DrawQuestion& draw, double temperature, int vocab_size) {
  size_t num_tokens = draw.support.size();
  if (draw.scored.has_value()) {
    if (!IsTop(*draw.scored, vocab_size)) return false;
    num_tokens += draw.scored->tokens.size();
  }
  return static_cast<int>(num_tokens) <= MaxTokensOf(vocab_size) &&
         AreTokens(draw.support, vocab_size) &&
         AreMoves(draw.moves, temperature, vocab_size);
}

// A copy goes from the first array to the end of what is used of the last.
template <typename First, typename Last>
size_t BytesOf(const First* first, const Last* last, int num_last) {
  return static_cast<size_t>(reinterpret_cast<const char*>(last + num_last) -
                             reinterpret_cast<const char*>(first));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowScorer>> RowScorer::Make(
    std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
    const Options& options) {
  std::unique_ptr<RowScorer> scorer(
      new RowScorer(std::move(gpu), counters, options));
  const size_t bytes = scorer->Place(nullptr, options.max_rows, scorer->host_);
  const size_t scratch_bytes = kernels::cuda::ScoreRowsScratchBytes(
      options.max_rows, options.vocab_size);
  std::vector<DeviceMemory> memories;
  for (const size_t each : {bytes, scratch_bytes}) {
    OUTRIDER_ASSIGN_OR_RETURN(
        DeviceMemory memory,
        DeviceMemory::AllocateZeroed(scorer->gpu_, each, "scores of rows"));
    counters.num_memory_bytes += static_cast<int64_t>(each);
    memories.push_back(std::move(memory));
  }
  scorer->memory_ =
      std::make_shared<const std::vector<DeviceMemory>>(std::move(memories));
  OUTRIDER_RETURN_IF_ERROR(scorer->TakePinned());
  return scorer;
}

absl::StatusOr<std::unique_ptr<RowScorer>> RowScorer::MakeTwin() const {
  std::unique_ptr<RowScorer> twin(new RowScorer(*this));
  OUTRIDER_RETURN_IF_ERROR(twin->TakePinned());
  return twin;
}

absl::Status RowScorer::TakePinned() {
  pinned_ = PinnedPool(gpu_).Take(Place(nullptr, options_.max_rows, host_));
  if (pinned_ == nullptr) {
    return absl::ResourceExhaustedError("no pinned memory for scores of rows");
  }
  return absl::OkStatus();
}

RowScorer::RowScorer(std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
                     const Options& options)
    : gpu_(std::move(gpu)),
      counters_(counters),
      options_(options),
      rows_(gpu_, options.most_pinned_bytes) {}

size_t RowScorer::Place(void* memory, int num_rows, Buffers& buffers) const {
  const auto rows = static_cast<size_t>(num_rows);
  const size_t tokens =
      rows * static_cast<size_t>(MaxTokensOf(options_.vocab_size));
  const size_t top = rows * static_cast<size_t>(MaxTopOf(options_.vocab_size));
  size_t used = 0;
  const auto cut = [&](auto*& piece, size_t count) {
    using Item = std::remove_reference_t<decltype(*piece)>;
    if (memory != nullptr) {
      piece = reinterpret_cast<Item*>(static_cast<char*>(memory) + used);
    }
    used += (count * sizeof(Item) + kArrayAlignment - 1) / kArrayAlignment *
            kArrayAlignment;
  };
  // Their order is that of the copies, each of which ends where what is used of
  // an array does.
  cut(buffers.draws, rows);
  cut(buffers.tops, rows);
  cut(buffers.tokens, tokens);
  cut(buffers.moved, tokens);
  cut(buffers.drawn, rows);
  cut(buffers.found, rows);
  cut(buffers.token_values, tokens);
  cut(buffers.ids, top);
  cut(buffers.top_logits, top);
  return used;
}

bool RowScorer::IsAnswerable(const WantedRow& row) const {
  if (row.question == nullptr || row.goes_on) return false;
  const int vocab_size = row.question->vocab_size;
  if (vocab_size < 1 || vocab_size > options_.vocab_size) return false;
  if (const auto* draw = std::get_if<DrawQuestion>(&row.question->what)) {
    return IsDraw(*draw, row.question->temperature, vocab_size);
  }
  const auto* top = std::get_if<TopQuestion>(&row.question->what);
  return top != nullptr && IsTop(*top, vocab_size);
}

void RowScorer::AskDraw(const float* row, const RowQuestion& question) {
  const auto& draw = std::get<DrawQuestion>(question.what);
  kernels::cuda::DrawRow& asked = host_.draws[used_.num_draws++];
  asked = {.logits = row,
           .vocab_size = question.vocab_size,
           .scale = ScaleOf(question.temperature),
           .first_support = used_.num_tokens,
           .num_support = static_cast<int>(draw.support.size()),
           .first_moved = used_.num_moved,
           .num_moved = static_cast<int>(draw.moves.tokens.size()),
           .repetition_penalty = draw.moves.repetition_penalty,
           .frequency_penalty = draw.moves.frequency_penalty,
           .presence_penalty = draw.moves.presence_penalty,
           .uniform = draw.uniform};
  if (draw.noise.has_value()) {
    asked.is_coupled = true;
    asked.seed = draw.noise->seed;
    asked.position = draw.noise->position;
  }
  std::copy(draw.support.begin(), draw.support.end(),
            host_.tokens + used_.num_tokens);
  used_.num_tokens += asked.num_support;
  for (const MovedToken& moved : draw.moves.tokens) {
    host_.moved[used_.num_moved++] = MovedLogitOf(moved);
  }
  if (draw.scored.has_value()) AskTop(row, question, *draw.scored);
}

void RowScorer::AskTop(const float* row, const RowQuestion& about,
                       const TopQuestion& top) {
  kernels::cuda::TopRow& asked = host_.tops[used_.num_tops++];
  asked = {.logits = row,
           .vocab_size = about.vocab_size,
           .scale = ScaleOf(about.temperature),
           .first_token = used_.num_tokens,
           .num_tokens = static_cast<int>(top.tokens.size()),
           .first_top = used_.num_top,
           .num_top = std::min(top.count, MaxTopOf(about.vocab_size)),
           .wants_mass = top.wants_top_probability};
  std::copy(top.tokens.begin(), top.tokens.end(),
            host_.tokens + used_.num_tokens);
  used_.num_tokens += asked.num_tokens;
  used_.num_top += asked.num_top;
}

void RowScorer::Ask(const float* logits, absl::Span<WantedRow> rows,
                    int num_rows) {
  used_ = {};
  if (num_rows == 0) return;
  Place(pinned_.get(), num_rows, host_);
  device_ = DeviceBuffers(num_rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].is_asked = IsAnswerable(rows[i]);
    if (!rows[i].is_asked) continue;
    const float* const row =
        logits + i * static_cast<size_t>(options_.vocab_size);
    const RowQuestion& question = *rows[i].question;
    if (std::holds_alternative<DrawQuestion>(question.what)) {
      AskDraw(row, question);
    } else {
      AskTop(row, question, std::get<TopQuestion>(question.what));
    }
  }
  // The others are rows of no tokens.
  std::fill(host_.draws + used_.num_draws, host_.draws + num_rows,
            kernels::cuda::DrawRow());
  std::fill(host_.tops + used_.num_tops, host_.tops + num_rows,
            kernels::cuda::TopRow());
  gpu_->Upload(device_.draws, host_.draws,
               BytesOf(host_.draws, host_.tokens, used_.num_tokens));
  if (used_.num_moved == 0) return;
  gpu_->Upload(device_.moved, host_.moved,
               static_cast<size_t>(used_.num_moved) * sizeof(*host_.moved));
}

RowScorer::Buffers RowScorer::DeviceBuffers(int num_rows) const {
  Buffers buffers;
  Place((*memory_)[0].data(), num_rows, buffers);
  return buffers;
}

void RowScorer::Answer(int num_rows) const {
  const Buffers device = DeviceBuffers(num_rows);
  gpu_->Run(kernels::cuda::ScoreRowsArgs{.rows = device.draws,
                                         .num_rows = num_rows,
                                         .vocab_size = options_.vocab_size,
                                         .support = device.tokens,
                                         .moved = device.moved,
                                         .scratch = (*memory_)[1].data(),
                                         .support_weights = device.token_values,
                                         .answers = device.drawn});
  gpu_->Run(kernels::cuda::TopRowsArgs{.rows = device.tops,
                                       .num_rows = num_rows,
                                       .vocab_size = options_.vocab_size,
                                       .tokens = device.tokens,
                                       .token_logits = device.token_values,
                                       .ids = device.ids,
                                       .logits = device.top_logits,
                                       .results = device.found});
}

absl::Status RowScorer::Download(const float* logits,
                                 absl::Span<WantedRow> rows) {
  const auto row_size = static_cast<size_t>(options_.vocab_size);
  // All before the first is on its way: memory may be short, and what is given
  // back then must not be written to.
  std::vector<std::pair<float*, size_t>> whole;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].is_asked || rows[i].goes_on) continue;
    OUTRIDER_ASSIGN_OR_RETURN(float* const row, MakeRow(rows[i]));
    whole.emplace_back(row, i * row_size);
  }
  for (const auto& [row, first] : whole) {
    gpu_->Download(row, logits + first, row_size * sizeof(float));
  }
  if (used_.num_draws + used_.num_tops == 0) return absl::OkStatus();
  gpu_->Download(host_.drawn, device_.drawn,
                 BytesOf(host_.drawn, host_.token_values, used_.num_tokens));
  if (used_.num_top == 0) return absl::OkStatus();
  const size_t bytes = static_cast<size_t>(used_.num_top) * sizeof(float);
  gpu_->Download(host_.ids, device_.ids, bytes);
  gpu_->Download(host_.top_logits, device_.top_logits, bytes);
  return absl::OkStatus();
}

absl::StatusOr<float*> RowScorer::MakeRow(WantedRow& wanted) {
  const size_t bytes = static_cast<size_t>(options_.vocab_size) * sizeof(float);
  const auto copy = std::static_pointer_cast<float>(rows_.TakeAny(bytes));
  if (copy == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a row of ", bytes, " bytes"));
  }
  wanted.result.logits = copy;
  ++counters_.num_copied_rows;
  return copy.get();
}

std::optional<RowAnswer> RowScorer::TakeDraw(const DrawQuestion& question,
                                             Used& taken) const {
  const kernels::cuda::DrawRow& asked = host_.draws[taken.num_draws];
  const kernels::cuda::DrawRowResult& drawn = host_.drawn[taken.num_draws++];
  std::optional<RowAnswer> scored;
  if (question.scored.has_value()) {
    scored = TakeTop(*question.scored, taken);
    if (!scored.has_value()) return std::nullopt;
  }
  if (!drawn.is_valid) return std::nullopt;
  const float* const weights = host_.token_values + asked.first_support;
  DrawAnswer answer = {
      .support_weights = {weights, weights + asked.num_support},
      .tail = drawn.tail};
  if (drawn.drawn >= 0) answer.drawn = drawn.drawn;
  answer.drawn_logit = drawn.drawn_logit;
  if (scored.has_value()) {
    answer.scored = std::get<TopAnswer>(*std::move(scored));
  }
  return answer;
}

std::optional<RowAnswer> RowScorer::TakeTop(const TopQuestion& question,
                                            Used& taken) const {
  const kernels::cuda::TopRow& asked = host_.tops[taken.num_tops];
  const kernels::cuda::TopRowResult& found = host_.found[taken.num_tops++];
  return TopAnswerOf(question, found, host_.ids + asked.first_top,
                     host_.top_logits + asked.first_top,
                     host_.token_values + asked.first_token);
}

void RowScorer::TakeAnswers(absl::Span<WantedRow> rows) {
  // Each with where its own answers are.
  std::vector<std::pair<WantedRow*, Used>> asked;
  Used next;
  for (WantedRow& row : rows) {
    if (!row.is_asked) continue;
    asked.emplace_back(&row, next);
    const auto* draw = std::get_if<DrawQuestion>(&row.question->what);
    next.num_draws += draw != nullptr ? 1 : 0;
    next.num_tops += draw == nullptr || draw->scored.has_value() ? 1 : 0;
  }
  options_.threads->ForEachRow(
      static_cast<int>(asked.size()), used_.num_top, [&](int i) {
        auto& [row, taken] = asked[i];
        const RowQuestion& question = *row->question;
        const auto* draw = std::get_if<DrawQuestion>(&question.what);
        row->result.answer =
            draw != nullptr
                ? TakeDraw(*draw, taken)
                : TakeTop(std::get<TopQuestion>(question.what), taken);
        ++(row->result.answer.has_value() ? counters_.num_answered_rows
                                          : counters_.num_undecided_rows);
      });
}

absl::Status RowScorer::FetchOthers(const float* logits,
                                    absl::Span<WantedRow> rows) {
  const auto row_size = static_cast<size_t>(options_.vocab_size);
  absl::Status status;
  for (size_t i = 0; i < rows.size() && status.ok(); ++i) {
    if (!IsUndecided(rows[i])) continue;
    const absl::StatusOr<float*> row = MakeRow(rows[i]);
    status = row.status();
    if (!row.ok()) continue;
    gpu_->Fetch(*row, logits + i * row_size, row_size * sizeof(float));
  }
  // Nothing may be on its way to memory that is given back.
  OUTRIDER_RETURN_IF_ERROR(StatusOfDevice(gpu_->AwaitFetches()));
  return status;
}

}  // namespace outrider
