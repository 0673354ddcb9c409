// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_JSON_FIELDS_H_
#define OUTRIDER_CORE_TOKENIZER_JSON_FIELDS_H_

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outrider {

struct JsonLimits {
  int max_depth = 64;
  size_t max_values = 4'000'000;  // each costs some 50 bytes of memory
};

// INVALID_ARGUMENT where `text` is not JSON, an object has a key twice, or a
// limit is exceeded. Never throws.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text,
                                         const JsonLimits& limits = {});

// A JSON object whose fields are read by name and type. A null field counts as
// missing. INVALID_ARGUMENT where a type is wrong. Points into the JSON value,
// which must outlive it.
class JsonFields {
 public:
  // `where` names the object in messages.
  static absl::StatusOr<JsonFields> Of(const nlohmann::json& value,
                                       absl::string_view where);

  // UNIMPLEMENTED, with the name, if there is a field that is not among these.
  absl::Status AllAmong(std::initializer_list<absl::string_view> names) const;

  // Null if missing.
  const nlohmann::json* Find(absl::string_view name) const;
  // These are INVALID_ARGUMENT if the field is missing.
  absl::StatusOr<const nlohmann::json*> Any(absl::string_view name) const;
  absl::StatusOr<const nlohmann::json*> Array(absl::string_view name) const;
  absl::StatusOr<JsonFields> Object(absl::string_view name) const;
  absl::StatusOr<std::string> String(absl::string_view name) const;
  // These are the default if the field is missing.
  absl::StatusOr<bool> Bool(absl::string_view name, bool otherwise) const;
  absl::StatusOr<std::string> String(absl::string_view name,
                                     absl::string_view otherwise) const;

  const std::string& where() const { return where_; }
  const nlohmann::json& value() const { return *value_; }

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

#endif  // OUTRIDER_CORE_TOKENIZER_JSON_FIELDS_H_
