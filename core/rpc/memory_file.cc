// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

constexpr char kNoFile[] = "the system has no room for a file in memory";

absl::Status WriteAll(int descriptor, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(descriptor, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ResourceExhaustedError(kNoFile);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

MemoryFile::MemoryFile() : descriptor_(memfd_create("outrider", MFD_CLOEXEC)) {}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status MemoryFile::Replace(absl::string_view content) {
  if (descriptor_ < 0) return absl::ResourceExhaustedError(kNoFile);
  const int fresh = memfd_create("outrider", MFD_CLOEXEC);
  if (fresh < 0) return absl::ResourceExhaustedError(kNoFile);
  absl::Status status = WriteAll(fresh, content);
  // Readers compare times, in seconds, before and after they read.
  const timespec time = {.tv_sec = ++num_contents_, .tv_nsec = 0};
  const timespec times[] = {time, time};
  if (status.ok() && (futimens(fresh, times) != 0 ||
                      dup3(fresh, descriptor_, O_CLOEXEC) < 0)) {
    status = absl::ResourceExhaustedError(kNoFile);
  }
  close(fresh);
  return status;
}

std::string MemoryFile::path() const {
  return absl::StrCat("/proc/self/fd/", descriptor_);
}

}  // namespace outrider
