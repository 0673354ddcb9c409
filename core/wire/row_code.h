// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_ROW_CODE_H_
#define OUTRIDER_CORE_WIRE_ROW_CODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/token.h"

namespace outrider {

// The ids and the rounded weights of a draft row in few bytes, without loss:
// SparseRow in the proto says how. The size depends on nothing but the row.

// The ids ascend.
std::string PackIds(absl::Span<const TokenId> ids);
// Ascending. INVALID_ARGUMENT where the bytes are no such code.
absl::StatusOr<std::vector<TokenId>> UnpackIds(absl::string_view bytes,
                                               uint32_t num_ids);

// Whether each weight is one of bfloat16's, so that packing as such loses
// nothing.
bool FitBFloat16(absl::Span<const double> weights);
// The weights must be positive and fit.
std::string PackBFloat16(absl::Span<const double> weights);
// Not negative; infinities and NaN are not refused here. INVALID_ARGUMENT where
// the bytes are no such code.
absl::StatusOr<std::vector<double>> UnpackBFloat16(absl::string_view bytes,
                                                   uint32_t num_weights);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_ROW_CODE_H_
