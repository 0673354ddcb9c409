// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_UTF8_H_
#define OUTRIDER_CLIENT_UTF8_H_

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace outrider::client {

// Where `text` stops being UTF-8: the index of the first byte that begins no
// character. Surrogates and overlong forms are none.
std::optional<size_t> FindInvalidUtf8(absl::string_view text);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_UTF8_H_
