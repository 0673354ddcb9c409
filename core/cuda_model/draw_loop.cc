// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/draw_loop.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/device_question.h"

namespace outrider {
namespace {

using kernels::cuda::DrawnRow;
using kernels::cuda::DrawSession;
using kernels::cuda::TopRow;

constexpr size_t kLoopAlignment = 256;
static_assert(kMaxTopLogits == kernels::cuda::kMaxDrawnTop);

int MostTop(int vocab_size) { return std::min(kMaxTopLogits, vocab_size); }

// The question, where a kernel can answer it and draw by the answer.
const TopQuestion* DrawableOf(const RowQuestion& question, int vocab_size) {
  const auto* top = std::get_if<TopQuestion>(&question.what);
  const bool is_drawable =
      top != nullptr && top->next.has_value() && top->tokens.empty() &&
      top->count >= 1 && top->count <= kMaxTopLogits &&
      question.vocab_size >= 1 && question.vocab_size <= vocab_size;
  return is_drawable ? top : nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DrawLoop>> DrawLoop::Make(
    std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
    const Options& options) {
  std::unique_ptr<DrawLoop> loop(
      new DrawLoop(std::move(gpu), counters, options));
  const size_t bytes = loop->Place(nullptr, /*is_device=*/true, loop->device_);
  OUTRIDER_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::AllocateZeroed(loop->gpu_, bytes, "tokens drawn in a row"));
  counters.num_memory_bytes += static_cast<int64_t>(bytes);
  loop->memory_ = std::make_shared<const DeviceMemory>(std::move(memory));
  loop->Place(loop->memory_->data(), /*is_device=*/true, loop->device_);
  loop->device_inputs_ = StepArrays(options.step, loop->device_.inputs);
  OUTRIDER_RETURN_IF_ERROR(loop->TakePinned());
  return loop;
}

absl::StatusOr<std::unique_ptr<DrawLoop>> DrawLoop::MakeTwin() const {
  std::unique_ptr<DrawLoop> twin(new DrawLoop(*this));
  OUTRIDER_RETURN_IF_ERROR(twin->TakePinned());
  return twin;
}

absl::Status DrawLoop::TakePinned() {
  pinned_ = pool_.Take(Place(nullptr, /*is_device=*/false, host_));
  if (pinned_ == nullptr) {
    return absl::ResourceExhaustedError(
        "no pinned memory for tokens drawn in a row");
  }
  Place(pinned_.get(), /*is_device=*/false, host_);
  return absl::OkStatus();
}

DrawLoop::DrawLoop(std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
                   const Options& options)
    : gpu_(std::move(gpu)),
      counters_(counters),
      options_(options),
      pool_(gpu_) {}

size_t DrawLoop::Place(void* memory, bool is_device, Buffers& buffers) const {
  const auto sessions = static_cast<size_t>(options_.step.rows);
  const auto rows = static_cast<size_t>(options_.max_rows);
  const auto top = rows * static_cast<size_t>(MostTop(options_.vocab_size));
  size_t used = 0;
  const auto cut = [&](auto*& piece, size_t bytes) {
    using Item = std::remove_reference_t<decltype(*piece)>;
    if (memory != nullptr) {
      piece = reinterpret_cast<Item*>(static_cast<char*>(memory) + used);
    }
    used += (bytes + kLoopAlignment - 1) / kLoopAlignment * kLoopAlignment;
  };
  cut(buffers.sessions, sessions * sizeof(DrawSession));
  cut(buffers.rows, sessions * sizeof(TopRow));
  char* inputs = nullptr;
  cut(inputs, StepArrays::Bytes(options_.step));
  buffers.inputs = inputs;
  cut(buffers.records, rows * sizeof(DrawnRow));
  cut(buffers.ids, top * sizeof(int));
  cut(buffers.top_logits, top * sizeof(float));
  if (!is_device) return used;
  cut(buffers.found, sessions * sizeof(kernels::cuda::TopRowResult));
  cut(buffers.logits,
      sessions * static_cast<size_t>(options_.vocab_size) * sizeof(float));
  return used;
}

void DrawLoop::Begin(const float* logits, absl::Span<WantedRow> rows) {
  inputs_.emplace(options_.step, host_.inputs);
  sessions_.clear();
  num_steps_ = num_records_ = num_top_ = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].goes_on = rows[i].extension != nullptr &&
                      Add(logits + i * static_cast<size_t>(options_.vocab_size),
                          *rows[i].extension);
  }
}

bool DrawLoop::Add(const float* row, const Extension& extension) {
  const RowQuestion& question = extension.questions.back();
  const TopQuestion* const top = DrawableOf(question, options_.vocab_size);
  const int num_rows = extension.max_drawn + 1;
  const int length =
      extension.cached_length + static_cast<int>(extension.tokens.size());
  // A kernel writes at the token's position.
  if (top == nullptr || top->next->position != static_cast<uint64_t>(length) ||
      num_records_ + num_rows > options_.max_rows) {
    return false;
  }
  // What it draws takes this one's place.
  const TokenId token = 0;
  const Extension first = {.blocks = extension.blocks,
                           .cached_length = length,
                           .tokens = {&token, 1},
                           .num_rows = 1,
                           .max_drawn = extension.max_drawn - 1};
  if (inputs_->Add(first, /*first=*/0) == 0) return false;
  const size_t place = sessions_.size();
  const int num_top = std::min(top->count, question.vocab_size);
  DrawSession& session = host_.sessions[place];
  session = SessionOf(*top->next);
  session.next_record = num_records_;
  session.num_left = num_rows;
  host_.rows[place] = {.logits = row,
                       .vocab_size = question.vocab_size,
                       .scale = ScaleOf(question.temperature),
                       .first_top = num_top_,
                       .num_top = num_top,
                       .wants_mass = top->wants_top_probability};
  sessions_.push_back({.first_record = num_records_,
                       .first_top = num_top_,
                       .num_rows = num_rows});
  num_steps_ = std::max(num_steps_, extension.max_drawn);
  num_records_ += num_rows;
  num_top_ += num_rows * num_top;
  return true;
}

void DrawLoop::Upload() {
  // Those that fill up the step have nothing to draw.
  for (int i = static_cast<int>(sessions_.size()); i < shape().num_rows; ++i) {
    host_.sessions[i] = {};
    host_.rows[i] = {};
  }
  const auto* const begin = reinterpret_cast<const char*>(host_.sessions);
  const auto* const end =
      static_cast<const char*>(host_.inputs) + inputs_->bytes();
  gpu_->Upload(device_.sessions, begin, static_cast<size_t>(end - begin));
}

void DrawLoop::Draw(int num_sessions) {
  gpu_->Run(kernels::cuda::TopRowsArgs{.rows = device_.rows,
                                       .num_rows = num_sessions,
                                       .vocab_size = options_.vocab_size,
                                       .ids = device_.ids,
                                       .logits = device_.top_logits,
                                       .results = device_.found});
  gpu_->Run(kernels::cuda::DrawNextArgs{
      .sessions = device_.sessions,
      .num_sessions = num_sessions,
      .rows = device_.rows,
      .found = device_.found,
      .ids = device_.ids,
      .top_logits = device_.top_logits,
      .records = device_.records,
      .tokens = device_inputs_.tokens,
      .positions = device_inputs_.positions,
      .blocks = device_inputs_.blocks,
      .tiles = device_inputs_.tiles,
      .num_tiles = kernels::cuda::NumTiles(1, options_.step.group),
      .tables = device_inputs_.tables,
      .spare_block = options_.step.spare_block,
      .logits = device_.logits,
      .vocab_size = options_.vocab_size});
}

void DrawLoop::Download() {
  if (empty()) return;
  gpu_->Download(host_.records, device_.records,
                 static_cast<size_t>(num_records_) * sizeof(DrawnRow));
  const size_t bytes = static_cast<size_t>(num_top_) * sizeof(float);
  gpu_->Download(host_.ids, device_.ids, bytes);
  gpu_->Download(host_.top_logits, device_.top_logits, bytes);
}

void DrawLoop::Take(absl::Span<WantedRow> rows) {
  std::vector<WantedRow*> own;
  for (WantedRow& row : rows) {
    if (row.goes_on) own.push_back(&row);
  }
  options_.threads->ForEachRow(static_cast<int>(own.size()), num_top_,
                               [&](int i) { TakeOne(sessions_[i], *own[i]); });
}

void DrawLoop::TakeOne(const Session& session, WantedRow& row) {
  const auto& question = std::get<TopQuestion>(row.question->what);
  const int num_top = std::min(question.count, row.question->vocab_size);
  for (int i = 0; i < session.num_rows; ++i) {
    const DrawnRow& record = host_.records[session.first_record + i];
    const int first_top = session.first_top + i * num_top;
    std::optional<RowAnswer> answer =
        TopAnswerOf(question, record.found, host_.ids + first_top,
                    host_.top_logits + first_top, nullptr);
    if (!answer.has_value()) {
      // A row that does not decide is asked for once more, by itself.
      if (i == 0) ++counters_.num_undecided_rows;
      row.drawn.resize(row.drawn_rows.size());
      return;
    }
    ++counters_.num_answered_rows;
    if (i == 0) {
      row.result.answer = std::move(answer);
    } else {
      row.drawn_rows.push_back({.answer = std::move(answer)});
      ++counters_.num_drawn_tokens;
    }
    if (record.token < 0) return;
    row.drawn.push_back(record.token);
  }
}

}  // namespace outrider
