// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_JSON_STRICT_JSON_H_
#define OUTRIDER_CORE_JSON_STRICT_JSON_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace outrider {

// What a reader of untrusted JSON insists on.
struct StrictJsonLimits {
  int max_depth = 16;  // nested objects and arrays, the outermost is 1
  size_t max_bytes = size_t{1} << 20;
  size_t max_values = 4'000'000;  // each costs some 50 bytes of memory
};

// The JSON object in `text`. INVALID_ARGUMENT, starting with `what`, where it
// is no object, no UTF-8, beyond a limit, or names a key twice. Never throws.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text,
                                               const std::string& what,
                                               const StrictJsonLimits& limits);

// The same for a file; NOT_FOUND where there is none.
absl::StatusOr<nlohmann::json> ReadStrictJson(const std::string& path,
                                              const StrictJsonLimits& limits);

}  // namespace outrider

#endif  // OUTRIDER_CORE_JSON_STRICT_JSON_H_
