// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_CONFIG_FIELDS_H_
#define OUTRIDER_CORE_MODEL_CONFIG_FIELDS_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/json/json_fields.h"
#include "nlohmann/json.hpp"

namespace outrider {

// What an error shows of it, which is its first 200 bytes.
std::string Briefly(const nlohmann::json& value);

// The fields of a config.json, of which there are many: remembers the first
// problem, so that callers read on and look at status() at the end. A missing
// field without a default is a problem. `object` must outlive it.
class ConfigFields {
 public:
  ConfigFields(const nlohmann::json& object, const std::string& where);

  const nlohmann::json* Find(absl::string_view name) const {
    return fields_.Find(name);
  }
  bool IsNull(absl::string_view name) const { return fields_.IsNull(name); }
  const std::string& where() const { return fields_.where(); }

  // Must be in [low, high].
  int Int(absl::string_view name, int low, int high,
          std::optional<int> fallback = std::nullopt);
  // Finite.
  double Number(absl::string_view name,
                std::optional<double> fallback = std::nullopt);
  double PositiveNumber(absl::string_view name,
                        std::optional<double> fallback = std::nullopt);
  bool Bool(absl::string_view name, bool fallback);
  std::string String(absl::string_view name,
                     std::optional<std::string> fallback = std::nullopt);

  void AllAmong(std::initializer_list<absl::string_view> names) {
    Adopt(fields_.AllAmong(names));
  }
  void Invalid(absl::string_view problem) { Adopt(fields_.Invalid(problem)); }
  void Unsupported(absl::string_view part) { Adopt(fields_.Unsupported(part)); }
  void Adopt(const absl::Status& status) { status_.Update(status); }
  const absl::Status& status() const { return status_; }

 private:
  // The value; where there is none, `instead`, and the problem is remembered.
  template <typename T>
  T Keep(absl::StatusOr<T> value, T instead) {
    if (value.ok()) return *std::move(value);
    Adopt(value.status());
    return instead;
  }

  JsonFields fields_;
  absl::Status status_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_CONFIG_FIELDS_H_
