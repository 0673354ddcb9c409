// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_TOKENIZER_LOADER_H_
#define OUTRIDER_CORE_TOKENIZER_TOKENIZER_LOADER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/tokenizer/tokenizer.h"

namespace outrider {

// Reads DIR/tokenizer.json, and the eos_token of DIR/tokenizer_config.json
// where there is one. NOT_FOUND where the former is missing, INVALID_ARGUMENT
// where one is damaged, UNIMPLEMENTED with the name of the part where it needs
// something that Outrider does not have.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const std::string& directory);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_TOKENIZER_LOADER_H_
