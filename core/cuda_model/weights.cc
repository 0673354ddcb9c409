// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace outrider {

using kernels::cuda::Element;
using kernels::cuda::PackedMatrix;
using kernels::cuda::Placement;

absl::StatusOr<WeightUploader> WeightUploader::Make(std::shared_ptr<Gpu> gpu,
                                                    Element element,
                                                    size_t staging_bytes) {
  OUTRIDER_ASSIGN_OR_RETURN(
      DeviceMemory staging,
      DeviceMemory::Allocate(gpu, staging_bytes, "weights on their way"));
  return WeightUploader(std::move(gpu), element, std::move(staging),
                        staging_bytes);
}

absl::StatusOr<PackedMatrix> WeightUploader::Empty(const Rows& rows) {
  const size_t bytes = kernels::cuda::PackedBytes(rows.out, rows.in);
  OUTRIDER_ASSIGN_OR_RETURN(DeviceMemory tiles,
                            DeviceMemory::Allocate(gpu_, bytes, "weights"));
  gpu_->Zero(tiles.data(), bytes);
  memory_.push_back(std::move(tiles));
  return PackedMatrix{.element = element_,
                      .tiles = memory_.back().data(),
                      .out = rows.out,
                      .in = rows.in};
}

absl::Status WeightUploader::Fill(const Rows& rows, Placement placement,
                                  void* tiles) {
  const size_t row_bytes = static_cast<size_t>(rows.in) * sizeof(uint16_t);
  // Whole tiles at a time, so that each piece starts one.
  const size_t fit = staging_bytes_ / row_bytes / kernels::cuda::kTileOut *
                     kernels::cuda::kTileOut;
  if (fit == 0) {
    return absl::UnimplementedError(absl::StrCat(
        rows.in, " inputs of a matrix are more than this program uploads"));
  }
  const int count = static_cast<int>(std::min<size_t>(fit, rows.out));
  for (int first = 0; first < rows.out; first += count) {
    const int num_rows = std::min(count, rows.out - first);
    gpu_->Upload(staging_.data(),
                 static_cast<const char*>(rows.data) + first * row_bytes,
                 num_rows * row_bytes);
    // Gate and up share a matrix, so that each fills half of its tiles.
    const int outputs_before =
        placement == Placement::kConsecutive ? first : 2 * first;
    gpu_->Run(kernels::cuda::PackArgs{
        .element = element_,
        .rows = staging_.data(),
        .num_rows = num_rows,
        .in = rows.in,
        .placement = placement,
        .tiles = static_cast<char*>(tiles) +
                 kernels::cuda::PackedBytes(outputs_before, rows.in)});
  }
  return Finish();
}

absl::Status WeightUploader::Finish() {
  const std::string failure = gpu_->Finish();
  if (failure.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("uploading weights: ", failure));
}

absl::StatusOr<PackedMatrix> WeightUploader::Matrix(const Rows& rows) {
  OUTRIDER_ASSIGN_OR_RETURN(const PackedMatrix matrix, Empty(rows));
  OUTRIDER_RETURN_IF_ERROR(
      Fill(rows, Placement::kConsecutive, memory_.back().data()));
  return matrix;
}

absl::StatusOr<PackedMatrix> WeightUploader::GateAndUp(const Rows& rows) {
  OUTRIDER_ASSIGN_OR_RETURN(const PackedMatrix matrix, Empty(rows));
  const Rows gate = {rows.data, rows.out / 2, rows.in};
  const Rows up = {static_cast<const uint16_t*>(rows.data) +
                       static_cast<size_t>(gate.out) * rows.in,
                   gate.out, rows.in};
  void* const tiles = memory_.back().data();
  OUTRIDER_RETURN_IF_ERROR(Fill(gate, Placement::kGate, tiles));
  OUTRIDER_RETURN_IF_ERROR(Fill(up, Placement::kUp, tiles));
  return matrix;
}

absl::StatusOr<const float*> WeightUploader::Floats(
    absl::Span<const float> values) {
  const size_t bytes = values.size() * sizeof(float);
  OUTRIDER_ASSIGN_OR_RETURN(DeviceMemory memory,
                            DeviceMemory::Allocate(gpu_, bytes, "weights"));
  gpu_->Upload(memory.data(), values.data(), bytes);
  OUTRIDER_RETURN_IF_ERROR(Finish());
  memory_.push_back(std::move(memory));
  return memory_.back().as<const float>();
}

}  // namespace outrider
