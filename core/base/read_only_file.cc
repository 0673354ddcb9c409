// SPDX-License-Identifier: Apache-2.0
#include "core/base/read_only_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// pread refuses more than 2^31 - 4096 bytes at once.
constexpr size_t kMaxReadBytes = size_t{1} << 30;

absl::Status FromErrno(const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace

absl::StatusOr<ReadOnlyFile> ReadOnlyFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return FromErrno(path, errno);
  struct stat info = {};
  if (fstat(descriptor, &info) != 0) {
    const int error = errno;
    close(descriptor);
    return FromErrno(path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": this is not a regular file"));
  }
  return ReadOnlyFile(path, descriptor, static_cast<uint64_t>(info.st_size));
}

ReadOnlyFile::~ReadOnlyFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status ReadOnlyFile::ReadAt(uint64_t offset, absl::Span<char> out) const {
  while (!out.empty()) {
    const ssize_t n = pread(descriptor_, out.data(),
                            std::min(out.size(), kMaxReadBytes), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FromErrno(path_, errno);
    if (n == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": ends at byte ", offset,
                       ", earlier than when it was opened; copy it again"));
    }
    offset += n;
    out.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          size_t max_bytes) {
  OUTRIDER_ASSIGN_OR_RETURN(const ReadOnlyFile file, ReadOnlyFile::Open(path));
  if (file.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the file has ", file.size(),
                     " bytes, more than the ", max_bytes, " allowed"));
  }
  std::string text(file.size(), '\0');
  OUTRIDER_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(text)));
  return text;
}

}  // namespace outrider
