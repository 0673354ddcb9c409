// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_COMMAND_FILE_HASH_H_
#define OUTRIDER_BENCH_COMMAND_FILE_HASH_H_

#include <string>

#include "core/base/cancellation.h"

namespace outrider::bench {

// What tells a file from others of its name: the first 12 hex digits of its
// SHA-256; those of nothing where it cannot be read.
std::string HashOfFile(const std::string& path);
// The same of what a model is loaded from: all JSON and safetensors files of
// its folder. Reads every byte; a cancellation ends that, and what comes of it
// then means nothing.
std::string HashOfModel(const std::string& folder,
                        const Cancellation& cancellation);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_COMMAND_FILE_HASH_H_
