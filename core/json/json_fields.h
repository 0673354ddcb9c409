// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_JSON_JSON_FIELDS_H_
#define OUTRIDER_CORE_JSON_JSON_FIELDS_H_

#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace outrider {

// A JSON object whose fields are read by name and type: the one reader of all
// files in JSON. A null field counts as missing. INVALID_ARGUMENT where a field
// is missing or of another type. Points into the JSON value, which must outlive
// it. Immutable.
class JsonFields {
 public:
  // `where` starts every message.
  static absl::StatusOr<JsonFields> Of(const nlohmann::json& value,
                                       absl::string_view where);

  // UNIMPLEMENTED, with the name, if there is a field that is not among these.
  absl::Status AllAmong(std::initializer_list<absl::string_view> names) const;

  // Null if missing.
  const nlohmann::json* Find(absl::string_view name) const;
  // Present, and null.
  bool IsNull(absl::string_view name) const;

  absl::StatusOr<const nlohmann::json*> Any(absl::string_view name) const;
  absl::StatusOr<const nlohmann::json*> Array(absl::string_view name) const;
  absl::StatusOr<JsonFields> Object(absl::string_view name) const;
  absl::StatusOr<std::string> String(absl::string_view name) const;
  absl::StatusOr<bool> Bool(absl::string_view name) const;
  // Must be in [low, high].
  absl::StatusOr<int> Int(absl::string_view name, int low, int high) const;
  // Finite.
  absl::StatusOr<double> Number(absl::string_view name) const;
  // These are the default if the field is missing.
  absl::StatusOr<std::string> String(absl::string_view name,
                                     absl::string_view otherwise) const;
  absl::StatusOr<bool> Bool(absl::string_view name, bool otherwise) const;

  const std::string& where() const { return where_; }
  const nlohmann::json& value() const { return *value_; }

  // INVALID_ARGUMENT "WHERE: problem".
  absl::Status Invalid(absl::string_view problem) const;
  // UNIMPLEMENTED "WHERE: part is not supported".
  absl::Status Unsupported(absl::string_view part) const;

 private:
  JsonFields(const nlohmann::json& value, absl::string_view where)
      : value_(&value), where_(where) {}
  absl::Status Wrong(absl::string_view name, absl::string_view want) const;

  const nlohmann::json* value_;
  std::string where_;
};

// An integer in [0, limit); INVALID_ARGUMENT otherwise.
absl::StatusOr<int> JsonIndex(const nlohmann::json& value, int limit,
                              absl::string_view where);

}  // namespace outrider

#endif  // OUTRIDER_CORE_JSON_JSON_FIELDS_H_
