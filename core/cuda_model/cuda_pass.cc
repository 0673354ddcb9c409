// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/cuda_pass.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/model/check_extension.h"

namespace outrider {
namespace {

// What is wanted of a pass's rows, in their order.
std::vector<WantedRow> WantedRows(absl::Span<const Extension> pass) {
  std::vector<WantedRow> rows;
  for (const Extension& extension : pass) {
    for (size_t i = 0; i < static_cast<size_t>(extension.num_rows); ++i) {
      rows.push_back({.question = extension.questions.empty()
                                      ? nullptr
                                      : &extension.questions[i]});
    }
    const bool may_go_on = extension.num_rows > 0 && extension.max_drawn > 0 &&
                           !extension.questions.empty();
    if (may_go_on) rows.back().extension = &extension;
  }
  return rows;
}

}  // namespace

CudaPass::CudaPass(CheckedPass pass, CudaTransformer& transformer,
                   StepInFlight& flight)
    : pass_(std::move(pass)),
      transformer_(transformer),
      flight_(flight),
      rows_(WantedRows(pass_.extensions())),
      left_(absl::MakeSpan(rows_)),
      launched_(Launch()) {}

absl::Status CudaPass::Launch() {
  if (pass_.extensions().empty()) return absl::OkStatus();
  std::vector<CudaTransformer::KvBlockCopy> copies;
  for (const Extension& extension : pass_.extensions()) {
    if (!extension.copied_block.has_value()) continue;
    copies.push_back({*extension.copied_block, CopyTarget(extension)});
  }
  transformer_.CopyKvBlocks(copies);
  StepInputs step(transformer_.step_limits(), flight_.inputs.get());
  for (const Extension& extension : pass_.extensions()) {
    for (size_t first = 0; first < extension.tokens.size();) {
      const int count = step.Add(extension, static_cast<int>(first));
      if (count == 0) {
        LaunchStep(step);
        OUTRIDER_RETURN_IF_ERROR(Bring());
        step.Clear();
      }
      first += static_cast<size_t>(count);
    }
  }
  LaunchStep(step);
  return absl::OkStatus();
}

void CudaPass::LaunchStep(StepInputs& step) {
  const auto num_wanted = static_cast<size_t>(step.shape().num_logit_rows);
  last_ = left_.first(num_wanted);
  left_.remove_prefix(num_wanted);
  transformer_.Launch(step, last_, flight_);
}

absl::Status CudaPass::Bring() { return transformer_.Bring(last_, flight_); }

PassResults CudaPass::Finish() {
  const bool is_in_flight = launched_.ok() && !pass_.extensions().empty();
  if (is_in_flight) launched_ = Bring();
  if (!launched_.ok()) return pass_.Results(launched_);
  return pass_.Results(TakeRows());
}

std::vector<LogitRows> CudaPass::TakeRows() {
  std::vector<LogitRows> results;
  auto next = rows_.begin();
  for (const Extension& extension : pass_.extensions()) {
    std::vector<LogitRows::AskedRow> own;
    std::vector<TokenId> drawn;
    for (int i = 0; i < extension.num_rows; ++i, ++next) {
      own.push_back(std::move(next->result));
      std::move(next->drawn_rows.begin(), next->drawn_rows.end(),
                std::back_inserter(own));
      drawn = std::move(next->drawn);
    }
    results.emplace_back(std::move(own), transformer_.vocab_size(),
                         std::move(drawn));
  }
  return results;
}

}  // namespace outrider
