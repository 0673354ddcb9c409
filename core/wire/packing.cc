// SPDX-License-Identifier: Apache-2.0
#include "core/wire/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/bfloat16.h"
#include "core/base/status_macros.h"

namespace outrider {

static_assert(std::endian::native == std::endian::little);

namespace {

template <typename Number>
absl::Status CheckRowBytes(absl::string_view bytes, int num_rows,
                           int vocab_size) {
  const size_t count = bytes.size() / sizeof(Number);
  if (num_rows < 1 || vocab_size < 1 ||
      count / vocab_size != static_cast<size_t>(num_rows) ||
      bytes.size() != sizeof(Number) * num_rows * vocab_size) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes are not ", num_rows, " rows of ",
                     vocab_size, " numbers of ", sizeof(Number), " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string PackFloat64(absl::Span<const double> values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(double));
}

absl::StatusOr<std::vector<double>> UnpackFloat64(absl::string_view bytes) {
  if (bytes.size() % sizeof(double) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes are no row of float64"));
  }
  std::vector<double> values(bytes.size() / sizeof(double));
  const char* from = bytes.data();
  for (double& value : values) {
    std::memcpy(&value, from, sizeof(value));
    from += sizeof(value);
  }
  return values;
}

bool FitFloat32(absl::Span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) {
    return static_cast<double>(static_cast<float>(value)) == value;
  });
}

std::string PackFloat32(absl::Span<const double> values) {
  const std::vector<float> packed(values.begin(), values.end());
  return std::string(reinterpret_cast<const char*>(packed.data()),
                     packed.size() * sizeof(float));
}

absl::StatusOr<std::vector<double>> UnpackFloat32(absl::string_view bytes) {
  if (bytes.size() % sizeof(float) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes are no row of float32"));
  }
  if (bytes.empty()) return std::vector<double>();  // memcpy takes no null
  std::vector<float> packed(bytes.size() / sizeof(float));
  std::memcpy(packed.data(), bytes.data(), bytes.size());
  return std::vector<double>(packed.begin(), packed.end());
}

std::string PackRows(const LogitRows& rows) {
  std::string bytes;
  const size_t row_bytes = rows.vocab_size() * sizeof(float);
  bytes.reserve(rows.num_rows() * row_bytes);
  for (int i = 0; i < rows.num_rows(); ++i) {
    bytes.append(reinterpret_cast<const char*>(rows.Row(i).data()), row_bytes);
  }
  return bytes;
}

std::string PackRowsBFloat16(const LogitRows& rows) {
  std::string bytes(sizeof(BFloat16) * rows.num_rows() * rows.vocab_size(),
                    '\0');
  char* to = bytes.data();
  for (const absl::Span<const float> row : rows.Rows()) {
    for (const float value : row) {
      const BFloat16 packed = ToBFloat16(value);
      std::memcpy(to, &packed, sizeof(packed));
      to += sizeof(packed);
    }
  }
  return bytes;
}

absl::StatusOr<LogitRows> UnpackRowsBFloat16(absl::string_view bytes,
                                             int num_rows, int vocab_size) {
  OUTRIDER_RETURN_IF_ERROR(
      CheckRowBytes<BFloat16>(bytes, num_rows, vocab_size));
  std::vector<float> values(bytes.size() / sizeof(BFloat16));
  const char* from = bytes.data();
  for (float& value : values) {
    BFloat16 packed;
    std::memcpy(&packed, from, sizeof(packed));
    from += sizeof(packed);
    value = ToFloat(packed);
  }
  return LogitRows::FromVector(std::move(values), vocab_size);
}

absl::StatusOr<LogitRows> UnpackRows(std::string bytes, int num_rows,
                                     int vocab_size) {
  OUTRIDER_RETURN_IF_ERROR(CheckRowBytes<float>(bytes, num_rows, vocab_size));
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) != 0) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return LogitRows::FromVector(std::move(values), vocab_size);
  }
  auto owner = std::make_shared<std::string>(std::move(bytes));
  const float* data = reinterpret_cast<const float*>(owner->data());
  return LogitRows(std::shared_ptr<const float>(owner, data), num_rows,
                   vocab_size);
}

}  // namespace outrider
