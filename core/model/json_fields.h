// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_JSON_FIELDS_H_
#define OUTRIDER_CORE_MODEL_JSON_FIELDS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace outrider {

// Reads typed fields of a JSON object and remembers the first problem: callers
// read on and look at status() at the end. A null field counts as missing; a
// missing one without a default is a problem. `object` must outlive it.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string what);

  // The value, or null where it is missing or null.
  const nlohmann::json* Find(const std::string& name) const;
  // Present, and null.
  bool IsNull(const std::string& name) const;
  std::string Path(absl::string_view name) const;

  // In [low, high].
  int Int(const std::string& name, int low, int high,
          std::optional<int> fallback = std::nullopt);
  // Finite.
  double Number(const std::string& name,
                std::optional<double> fallback = std::nullopt);
  double PositiveNumber(const std::string& name,
                        std::optional<double> fallback = std::nullopt);
  bool Bool(const std::string& name, bool fallback);
  std::string String(const std::string& name,
                     std::optional<std::string> fallback = std::nullopt);

  void Invalid(absl::string_view problem);
  void Unsupported(absl::string_view part);
  void Adopt(const absl::Status& status);
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json& object_;
  const std::string what_;
  absl::Status status_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_JSON_FIELDS_H_
