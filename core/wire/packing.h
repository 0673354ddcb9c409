// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_PACKING_H_
#define OUTRIDER_CORE_WIRE_PACKING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/model/logit_rows.h"

namespace outrider {

// Numbers to bytes and back, little-endian as every machine we run on.

std::string PackFloat64(absl::Span<const double> values);
// INVALID_ARGUMENT unless the size is a multiple of 8.
absl::StatusOr<std::vector<double>> UnpackFloat64(absl::string_view bytes);

// Whether each value is one of float32's, infinities included, so that packing
// as such loses nothing.
bool FitFloat32(absl::Span<const double> values);
// The values must fit.
std::string PackFloat32(absl::Span<const double> values);
// INVALID_ARGUMENT unless the size is a multiple of 4.
absl::StatusOr<std::vector<double>> UnpackFloat32(absl::string_view bytes);

// [num_rows, vocab_size] float32, row-major.
std::string PackRows(const LogitRows& rows);
// The same in bfloat16, rounded to nearest even.
std::string PackRowsBFloat16(const LogitRows& rows);
// Takes the bytes over without a copy. INVALID_ARGUMENT unless they are
// num_rows * vocab_size * 4, both at least 1.
absl::StatusOr<LogitRows> UnpackRows(std::string bytes, int num_rows,
                                     int vocab_size);
// INVALID_ARGUMENT unless they are num_rows * vocab_size * 2, both at least 1.
absl::StatusOr<LogitRows> UnpackRowsBFloat16(absl::string_view bytes,
                                             int num_rows, int vocab_size);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_PACKING_H_
