// SPDX-License-Identifier: Apache-2.0
#include "core/json/json_fields.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

using nlohmann::json;

// Messages show the beginning of a value: a file may hold a long one.
constexpr size_t kMaxShownBytes = 100;

}  // namespace

absl::StatusOr<JsonFields> JsonFields::Of(const json& value,
                                          absl::string_view where) {
  if (!value.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(where, " is not an object"));
  }
  return JsonFields(value, where);
}

absl::Status JsonFields::AllAmong(
    std::initializer_list<absl::string_view> names) const {
  for (const auto& [name, value] : value_->items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return Unsupported(absl::StrCat("the field '", name, "'"));
    }
  }
  return absl::OkStatus();
}

const json* JsonFields::Find(absl::string_view name) const {
  const auto it = value_->find(std::string(name));
  return it == value_->end() || it->is_null() ? nullptr : &*it;
}

bool JsonFields::IsNull(absl::string_view name) const {
  const auto it = value_->find(std::string(name));
  return it != value_->end() && it->is_null();
}

absl::StatusOr<const json*> JsonFields::Any(absl::string_view name) const {
  const json* value = Find(name);
  if (value == nullptr) return Invalid(absl::StrCat(name, " is missing"));
  return value;
}

absl::StatusOr<const json*> JsonFields::Array(absl::string_view name) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  if (!value->is_array()) return Wrong(name, "an array");
  return value;
}

absl::StatusOr<JsonFields> JsonFields::Object(absl::string_view name) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  return Of(*value, absl::StrCat(where_, ": ", name));
}

absl::StatusOr<std::string> JsonFields::String(absl::string_view name) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  if (!value->is_string()) return Wrong(name, "a string");
  return value->get_ref<const std::string&>();
}

absl::StatusOr<bool> JsonFields::Bool(absl::string_view name) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  if (!value->is_boolean()) return Wrong(name, "true or false");
  return value->get<bool>();
}

absl::StatusOr<int> JsonFields::Int(absl::string_view name, int low,
                                    int high) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  // The parser stores what is not negative as unsigned.
  const bool fits = value->is_number_unsigned()
                        ? std::cmp_greater_equal(value->get<uint64_t>(), low) &&
                              std::cmp_less_equal(value->get<uint64_t>(), high)
                        : value->is_number_integer() &&
                              value->get<int64_t>() >= low &&
                              value->get<int64_t>() <= high;
  if (!fits) {
    return Wrong(name, absl::StrCat("an integer in [", low, ", ", high, "]"));
  }
  return value->get<int>();
}

absl::StatusOr<double> JsonFields::Number(absl::string_view name) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return Wrong(name, "a number");
  }
  return value->get<double>();
}

absl::StatusOr<std::string> JsonFields::String(
    absl::string_view name, absl::string_view otherwise) const {
  if (Find(name) == nullptr) return std::string(otherwise);
  return String(name);
}

absl::StatusOr<bool> JsonFields::Bool(absl::string_view name,
                                      bool otherwise) const {
  if (Find(name) == nullptr) return otherwise;
  return Bool(name);
}

absl::Status JsonFields::Invalid(absl::string_view problem) const {
  return absl::InvalidArgumentError(absl::StrCat(where_, ": ", problem));
}

absl::Status JsonFields::Unsupported(absl::string_view part) const {
  return absl::UnimplementedError(
      absl::StrCat(where_, ": ", part, " is not supported"));
}

absl::Status JsonFields::Wrong(absl::string_view name,
                               absl::string_view want) const {
  const std::string text = Find(name)->dump();
  return Invalid(absl::StrCat(name, " is ", text.substr(0, kMaxShownBytes),
                              text.size() > kMaxShownBytes ? "…" : "", ", not ",
                              want));
}

absl::StatusOr<int> JsonIndex(const json& value, int limit,
                              absl::string_view where) {
  // The parser stores what is not negative as unsigned.
  if (!value.is_number_unsigned()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " is not a number from 0 up"));
  }
  const uint64_t number = value.get<uint64_t>();
  if (number >= static_cast<uint64_t>(limit)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " is ", number, ", not below ", limit));
  }
  return static_cast<int>(number);
}

}  // namespace outrider
