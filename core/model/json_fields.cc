// SPDX-License-Identifier: Apache-2.0
#include "core/model/json_fields.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outrider {

using nlohmann::json;

JsonFields::JsonFields(const json& object, std::string what)
    : object_(object), what_(std::move(what)) {
  if (!object.is_object()) Invalid("not an object");
}

const json* JsonFields::Find(const std::string& name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::IsNull(const std::string& name) const {
  if (!object_.is_object()) return false;
  const auto found = object_.find(name);
  return found != object_.end() && found->is_null();
}

std::string JsonFields::Path(absl::string_view name) const {
  return absl::StrCat(what_, ": ", name);
}

int JsonFields::Int(const std::string& name, int low, int high,
                    std::optional<int> fallback) {
  const json* value = Find(name);
  if (value == nullptr) {
    if (!fallback) Invalid(absl::StrCat("no ", name));
    return fallback.value_or(low);
  }
  // An unsigned number beyond int64 turns negative here, hence out of range.
  const int64_t number =
      value->is_number_integer() ? value->get<int64_t>() : int64_t{low} - 1;
  if (number < low || number > high) {
    Invalid(absl::StrCat(name, " is ", value->dump(), ", not an integer in [",
                         low, ", ", high, "]"));
    return low;
  }
  return static_cast<int>(number);
}

double JsonFields::Number(const std::string& name,
                          std::optional<double> fallback) {
  const json* value = Find(name);
  if (value == nullptr) {
    if (!fallback) Invalid(absl::StrCat("no ", name));
    return fallback.value_or(1.0);
  }
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    Invalid(absl::StrCat(name, " is ", value->dump(), ", not a number"));
    return fallback.value_or(1.0);
  }
  return value->get<double>();
}

double JsonFields::PositiveNumber(const std::string& name,
                                  std::optional<double> fallback) {
  const double value = Number(name, fallback);
  if (value <= 0.0) {
    Invalid(absl::StrCat(name, " is ", value, ", not positive"));
  }
  return value;
}

bool JsonFields::Bool(const std::string& name, bool fallback) {
  const json* value = Find(name);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    Invalid(absl::StrCat(name, " is ", value->dump(), ", not true or false"));
    return fallback;
  }
  return value->get<bool>();
}

std::string JsonFields::String(const std::string& name,
                               std::optional<std::string> fallback) {
  const json* value = Find(name);
  if (value == nullptr) {
    if (!fallback) Invalid(absl::StrCat("no ", name));
    return fallback.value_or("");
  }
  if (!value->is_string()) {
    Invalid(absl::StrCat(name, " is ", value->dump(), ", not a string"));
    return fallback.value_or("");
  }
  return value->get<std::string>();
}

void JsonFields::Invalid(absl::string_view problem) {
  Adopt(absl::InvalidArgumentError(Path(problem)));
}

void JsonFields::Unsupported(absl::string_view part) {
  Adopt(
      absl::UnimplementedError(absl::StrCat(Path(part), " is not supported")));
}

void JsonFields::Adopt(const absl::Status& status) { status_.Update(status); }

}  // namespace outrider
