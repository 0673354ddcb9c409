// SPDX-License-Identifier: Apache-2.0
#include "core/model/config_fields.h"

#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

using nlohmann::json;

// What is read of something that is no object.
const json& NoFields() {
  static const json* const kNoFields = new json(json::object());
  return *kNoFields;
}

}  // namespace

std::string Briefly(const json& value) { return value.dump().substr(0, 200); }

ConfigFields::ConfigFields(const json& object, const std::string& where)
    : fields_(
          *JsonFields::Of(object.is_object() ? object : NoFields(), where)) {
  Adopt(JsonFields::Of(object, where).status());
}

int ConfigFields::Int(absl::string_view name, int low, int high,
                      std::optional<int> fallback) {
  if (fallback && Find(name) == nullptr) return *fallback;
  return Keep(fields_.Int(name, low, high), low);
}

double ConfigFields::Number(absl::string_view name,
                            std::optional<double> fallback) {
  if (fallback && Find(name) == nullptr) return *fallback;
  return Keep(fields_.Number(name), fallback.value_or(1.0));
}

double ConfigFields::PositiveNumber(absl::string_view name,
                                    std::optional<double> fallback) {
  const double value = Number(name, fallback);
  if (value <= 0.0) {
    Invalid(absl::StrCat(name, " is ", value, ", not positive"));
  }
  return value;
}

bool ConfigFields::Bool(absl::string_view name, bool fallback) {
  return Keep(fields_.Bool(name, fallback), fallback);
}

std::string ConfigFields::String(absl::string_view name,
                                 std::optional<std::string> fallback) {
  if (fallback && Find(name) == nullptr) return *fallback;
  return Keep(fields_.String(name), std::string());
}

}  // namespace outrider
