// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_READ_ONLY_FILE_H_
#define OUTRIDER_CORE_BASE_READ_ONLY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace outrider {

// An open regular file, read by pread: a file that shrinks under us is an
// error, where a mapping would be SIGBUS. Thread-safe after construction.
class ReadOnlyFile {
 public:
  // NOT_FOUND where there is none, INVALID_ARGUMENT where it is not a regular
  // file, PERMISSION_DENIED or UNAVAILABLE where the system refuses.
  static absl::StatusOr<ReadOnlyFile> Open(const std::string& path);

  ReadOnlyFile(ReadOnlyFile&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  ReadOnlyFile& operator=(ReadOnlyFile&&) = delete;
  ~ReadOnlyFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // bytes, when opened

  // Fills `out` from `offset` on. INVALID_ARGUMENT where the file ends before.
  absl::Status ReadAt(uint64_t offset, absl::Span<char> out) const;

 private:
  ReadOnlyFile(std::string path, int descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  std::string path_;
  int descriptor_;
  uint64_t size_;
};

// All of a file that has at most `max_bytes`; INVALID_ARGUMENT where it has
// more. Other codes: ReadOnlyFile.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          size_t max_bytes);

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_READ_ONLY_FILE_H_
