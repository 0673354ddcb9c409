// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_FUZZ_FUZZ_INPUT_H_
#define OUTRIDER_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"

namespace outrider::testing {

inline absl::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// An input of two messages: two bytes give the length of the first, little-
// endian (make_seeds.py writes them so).
struct MessagePair {
  std::string first = {};
  std::string second = {};

  static MessagePair Of(absl::string_view input) {
    if (input.size() < 2) return {};
    const size_t told =
        static_cast<uint8_t>(input[0]) | static_cast<uint8_t>(input[1]) << 8;
    input.remove_prefix(2);
    const size_t length = std::min(told, input.size());
    return {.first = std::string(input.substr(0, length)),
            .second = std::string(input.substr(length))};
  }
};

// What reads from outside refuses with one of these, and with words.
inline void CheckRefusal(const absl::Status& status) {
  OUTRIDER_CHECK(!status.ok());
  OUTRIDER_CHECK(!status.message().empty());
}

// What was understood is written, read and written again: the same bytes.
template <typename Message, typename Value, typename Read>
void CheckRoundTrip(const Value& value, Read read) {
  const Message written = ToProto(value);
  const auto again = read(written);
  OUTRIDER_CHECK(again.ok()) << again.status();
  OUTRIDER_CHECK(ToProto(*again).SerializeAsString() ==
                 written.SerializeAsString());
}

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_FUZZ_FUZZ_INPUT_H_
