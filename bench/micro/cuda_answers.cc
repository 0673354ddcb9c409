// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/cuda_answers.h"

#include <algorithm>
#include <cstddef>
#include <numbers>
#include <string>
#include <utility>

#include "core/base/status_macros.h"

namespace outrider {
namespace {

using kernels::cuda::DrawRow;
using kernels::cuda::DrawSession;
using kernels::cuda::TopRow;

// A graph's own launch takes some microseconds, which are to be no part of a
// kernel's time.
constexpr int kLaunches = 64;

// The step that is drawn for has one block and one tile for each row.
DrawSession SessionOf(int row, int count) {
  return {.top_p = 0.98,
          .support_size = count,
          .round_weights = true,
          .seed = 1,
          .next_record = row,
          .num_left = 2};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaAnswers>> CudaAnswers::Make(
    std::shared_ptr<Gpu> gpu, int vocab_size, int max_rows) {
  std::unique_ptr<CudaAnswers> answers(
      new CudaAnswers(std::move(gpu), vocab_size, max_rows));
  OUTRIDER_RETURN_IF_ERROR(answers->Allocate());
  return answers;
}

template <typename T>
absl::Status CudaAnswers::Allocate(T*& piece, size_t count) {
  OUTRIDER_ASSIGN_OR_RETURN(
      DeviceMemory memory, DeviceMemory::AllocateZeroed(gpu_, count * sizeof(T),
                                                        "answers to measure"));
  piece = memory.as<T>();
  memory_.push_back(std::move(memory));
  return absl::OkStatus();
}

absl::Status CudaAnswers::Allocate() {
  const auto rows = static_cast<size_t>(max_rows_);
  asked_ = {Asked{1, "top 1", "draw 1", "score 1"},
            Asked{32, "top 32", "draw 32", "score 32"},
            Asked{1024, "top 1024", "draw 1024", "score 1024"}};
  absl::Status status = Allocate(tokens_, rows);
  status.Update(Allocate(positions_, rows));
  status.Update(Allocate(blocks_, rows));
  status.Update(Allocate(tables_, rows));
  status.Update(Allocate(tiles_, rows));
  status.Update(Allocate(records_, rows));
  status.Update(Allocate(answers_, rows));
  status.Update(Allocate(
      scratch_, kernels::cuda::ScoreRowsScratchBytes(max_rows_, vocab_size_)));
  for (Asked& asked : asked_) {
    asked.count = std::min(asked.count, vocab_size_);
    const size_t of_all = rows * static_cast<size_t>(asked.count);
    const size_t drawn = rows * (sizeof(DrawSession) + sizeof(TopRow));
    status.Update(Allocate(asked.tops, rows));
    status.Update(Allocate(asked.draws, rows));
    status.Update(Allocate(asked.found, rows));
    status.Update(Allocate(asked.ids, of_all));
    status.Update(Allocate(asked.top_logits, of_all));
    status.Update(Allocate(asked.support, of_all));
    status.Update(Allocate(asked.weights, of_all));
    status.Update(Allocate(asked.before, drawn));
    status.Update(Allocate(asked.drawn, drawn));
  }
  return status;
}

absl::Status CudaAnswers::Upload(const Asked& asked, const float* logits,
                                 int num_rows) {
  std::vector<TopRow> tops;
  std::vector<DrawRow> draws;
  std::vector<DrawSession> sessions;
  std::vector<int> support;
  for (int i = 0; i < num_rows; ++i) {
    const float* const row = logits + static_cast<size_t>(i) * vocab_size_;
    const int first = i * asked.count;
    tops.push_back({.logits = row,
                    .vocab_size = vocab_size_,
                    .scale = std::numbers::log2e,
                    .first_top = first,
                    .num_top = asked.count});
    draws.push_back({.logits = row,
                     .vocab_size = vocab_size_,
                     .scale = std::numbers::log2e,
                     .first_support = first,
                     .num_support = asked.count,
                     .uniform = 0.5});
    sessions.push_back(SessionOf(i, asked.count));
    for (size_t t = 0; t < static_cast<size_t>(asked.count); ++t) {
      support.push_back(
          static_cast<int>(t * vocab_size_ / static_cast<size_t>(asked.count)));
    }
  }
  const auto upload = [&](void* to, const auto& items) {
    gpu_->Upload(to, items.data(), items.size() * sizeof(items[0]));
  };
  upload(asked.tops, tops);
  upload(asked.draws, draws);
  upload(asked.support, support);
  upload(asked.before, sessions);
  upload(asked.before + sessions.size() * sizeof(DrawSession), tops);
  FindTop(asked, num_rows);                    // what is drawn from
  const std::string failure = gpu_->Finish();  // before what it reads goes
  return failure.empty() ? absl::OkStatus() : absl::UnavailableError(failure);
}

absl::StatusOr<std::vector<DecoderPart>> CudaAnswers::Parts(const float* logits,
                                                            int num_rows) {
  std::vector<DecoderPart> parts;
  const auto add = [&](const char* name, const auto& launch) {
    parts.push_back({.name = name,
                     .num_launches = kLaunches,
                     .launch = [launch](int) { launch(); }});
  };
  for (const Asked& asked : asked_) {
    OUTRIDER_RETURN_IF_ERROR(Upload(asked, logits, num_rows));
    add(asked.top_name, [=, this, &asked] { FindTop(asked, num_rows); });
    add(asked.draw_name,
        [=, this, &asked] { DrawNext(asked, logits, num_rows); });
    add(asked.score_name, [=, this, &asked] { Score(asked, num_rows); });
  }
  return parts;
}

void CudaAnswers::FindTop(const Asked& asked, int num_rows) {
  gpu_->Run(kernels::cuda::TopRowsArgs{.rows = asked.tops,
                                       .num_rows = num_rows,
                                       .vocab_size = vocab_size_,
                                       .ids = asked.ids,
                                       .logits = asked.top_logits,
                                       .results = asked.found});
}

void CudaAnswers::DrawNext(const Asked& asked, const float* logits,
                           int num_rows) {
  const size_t bytes = static_cast<size_t>(num_rows) * sizeof(DrawSession);
  gpu_->Copy(asked.drawn, asked.before,
             bytes + static_cast<size_t>(num_rows) * sizeof(TopRow));
  gpu_->Run(kernels::cuda::DrawNextArgs{
      .sessions = reinterpret_cast<DrawSession*>(asked.drawn),
      .num_sessions = num_rows,
      .rows = reinterpret_cast<TopRow*>(asked.drawn + bytes),
      .found = asked.found,
      .ids = asked.ids,
      .top_logits = asked.top_logits,
      .records = records_,
      .tokens = tokens_,
      .positions = positions_,
      .blocks = blocks_,
      .tiles = tiles_,
      .tables = tables_,
      .logits = logits,
      .vocab_size = vocab_size_});
}

void CudaAnswers::Score(const Asked& asked, int num_rows) {
  gpu_->Run(kernels::cuda::ScoreRowsArgs{.rows = asked.draws,
                                         .num_rows = num_rows,
                                         .vocab_size = vocab_size_,
                                         .support = asked.support,
                                         .scratch = scratch_,
                                         .support_weights = asked.weights,
                                         .answers = answers_});
}

}  // namespace outrider
