// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_MEMORY_FILE_H_
#define OUTRIDER_CORE_RPC_MEMORY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outrider {

// A file that lies in memory, for libraries that only take paths: what is
// secret touches no disk, and a new content takes the place of the old one at
// once, so that no reader sees half of both. Thread-compatible; paths may be
// read from any thread.
class MemoryFile {
 public:
  MemoryFile();  // empty
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  // The time of modification changes too. RESOURCE_EXHAUSTED where the system
  // has no memory or no descriptors; then the old content stays.
  absl::Status Replace(absl::string_view content);
  // The path is one of this process alone, and the same for every content.
  std::string path() const;

 private:
  const int descriptor_;  // negative where the system had none
  int num_contents_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_MEMORY_FILE_H_
