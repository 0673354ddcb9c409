// SPDX-License-Identifier: Apache-2.0
#include "core/base/last_words.h"

#include <iostream>

#include "core/base/log.h"

namespace outrider {

void SayWhyItEnds(absl::string_view program, absl::string_view why) {
  if (CurrentLogFormat() == LogFormat::kJson) {
    OUTRIDER_LOG(kError, {{"program", program}}) << why;
  } else {
    std::cerr << program << ": " << why << std::endl;
  }
}

}  // namespace outrider
