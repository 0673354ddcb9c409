// SPDX-License-Identifier: Apache-2.0
#include "core/json/strict_json.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/read_only_file.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

using nlohmann::json;

// Builds the document and stops at the first thing that is not allowed.
class StrictBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit StrictBuilder(const StrictJsonLimits& limits) : limits_(limits) {}

  json TakeRoot() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override {
    return Add(value);
  }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(json::binary_t&) override { return Refuse("binary value"); }

  bool key(std::string& name) override {
    if (open_.back()->contains(name)) {
      return Refuse(absl::StrCat("key \"", name, "\" appears twice"));
    }
    key_ = std::move(name);
    return true;
  }
  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Refuse(absl::StrCat("this is not valid JSON at byte ", position));
  }

 private:
  bool Refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  // One more value, which must not be one too many.
  bool Count() {
    if (++num_values_ <= limits_.max_values) return true;
    return Refuse(
        absl::StrCat("there are more than ", limits_.max_values, " values"));
  }
  bool Add(json value) {
    if (!Count()) return false;
    Place(std::move(value));
    return true;
  }
  bool Open(json container) {
    if (static_cast<int>(open_.size()) >= limits_.max_depth) {
      return Refuse(absl::StrCat("objects and arrays are nested deeper than ",
                                 limits_.max_depth));
    }
    if (!Count()) return false;
    open_.push_back(Place(std::move(container)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  // Pointers to open containers stay valid: only the innermost one grows.
  json* Place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    json& slot = parent[key_];
    slot = std::move(value);
    return &slot;
  }

  const StrictJsonLimits limits_;
  size_t num_values_ = 0;
  json root_;
  std::vector<json*> open_;
  std::string key_;
  std::string problem_;
};

}  // namespace

absl::StatusOr<json> ParseStrictJson(absl::string_view text,
                                     const std::string& what,
                                     const StrictJsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": this has ", text.size(), " bytes, more than the ",
                     limits.max_bytes, " allowed"));
  }
  // The parser takes a zero byte for the end and ignores what follows.
  if (absl::StrContains(text, '\0')) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": this is not valid JSON: it holds a zero byte"));
  }
  StrictBuilder builder(limits);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", builder.problem()));
  }
  json root = builder.TakeRoot();
  if (!root.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": this is not a JSON object"));
  }
  return root;
}

absl::StatusOr<json> ReadStrictJson(const std::string& path,
                                    const StrictJsonLimits& limits) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::string text,
                            ReadWholeFile(path, limits.max_bytes));
  return ParseStrictJson(text, path, limits);
}

}  // namespace outrider
