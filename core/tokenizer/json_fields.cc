// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/json_fields.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

using nlohmann::json;

// Watches the parser: what breaks a limit is dropped instead of stored, so
// memory stays bounded, and the whole parse then fails.
class ParseWatch {
 public:
  explicit ParseWatch(const JsonLimits& limits) : limits_(limits) {}

  bool Keep(json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (++depth_ > limits_.max_depth) Fail("nesting is too deep");
      if (event == Event::object_start && status_.ok()) keys_.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      --depth_;
      if (event == Event::object_end && status_.ok()) keys_.pop_back();
    } else if (event == Event::key && status_.ok()) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        Fail(absl::StrCat("the key '", key, "' occurs twice"));
      }
    }
    if (++num_values_ > limits_.max_values) Fail("there are too many values");
    return status_.ok();
  }

  const absl::Status& status() const { return status_; }

 private:
  void Fail(absl::string_view message) {
    status_.Update(absl::InvalidArgumentError(message));
  }

  const JsonLimits limits_;
  int depth_ = 0;
  size_t num_values_ = 0;
  std::vector<absl::flat_hash_set<std::string>> keys_;  // of the open objects
  absl::Status status_;
};

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text,
                               const JsonLimits& limits) {
  ParseWatch watch(limits);
  json value = json::parse(
      text.data(), text.data() + text.size(),
      [&](int /*depth*/, json::parse_event_t event, json& parsed) {
        return watch.Keep(event, parsed);
      },
      /*allow_exceptions=*/false);
  OUTRIDER_RETURN_IF_ERROR(watch.status());
  if (value.is_discarded()) {
    return absl::InvalidArgumentError("this is not valid JSON");
  }
  return value;
}

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
      return absl::UnimplementedError(
          absl::StrCat(where_, " has the unknown field '", name, "'"));
    }
  }
  return absl::OkStatus();
}

const json* JsonFields::Find(absl::string_view name) const {
  const auto it = value_->find(std::string(name));
  return it == value_->end() || it->is_null() ? nullptr : &*it;
}

absl::StatusOr<const json*> JsonFields::Any(absl::string_view name) const {
  const json* value = Find(name);
  if (value == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, " has no field '", name, "'"));
  }
  return value;
}

absl::StatusOr<const json*> JsonFields::Array(absl::string_view name) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  if (!value->is_array()) return Wrong(name, "an array");
  return value;
}

absl::StatusOr<JsonFields> JsonFields::Object(absl::string_view name) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  return Of(*value, absl::StrCat(where_, ".", name));
}

absl::StatusOr<std::string> JsonFields::String(absl::string_view name) const {
  OUTRIDER_ASSIGN_OR_RETURN(const json* value, Any(name));
  if (!value->is_string()) return Wrong(name, "a string");
  return value->get_ref<const std::string&>();
}

absl::StatusOr<bool> JsonFields::Bool(absl::string_view name,
                                      bool otherwise) const {
  const json* value = Find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) return Wrong(name, "true or false");
  return value->get<bool>();
}

absl::StatusOr<std::string> JsonFields::String(
    absl::string_view name, absl::string_view otherwise) const {
  if (Find(name) == nullptr) return std::string(otherwise);
  return String(name);
}

absl::Status JsonFields::Wrong(absl::string_view name,
                               absl::string_view want) const {
  return absl::InvalidArgumentError(
      absl::StrCat(where_, ".", name, " is not ", want));
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
