// SPDX-License-Identifier: Apache-2.0
#include "core/base/open_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

std::string BesideTheProgram(const std::string& library) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "lib" / library).string();
}

// What the loader said last.
std::string LoadError() {
  const char* reason = dlerror();
  return reason == nullptr ? "no reason given" : reason;
}

}  // namespace

absl::StatusOr<void*> OpenLibrary(const std::string& library,
                                  const std::string& function) {
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL;
  void* handle = dlopen(library.c_str(), kHow);
  if (handle == nullptr && library.find('/') == std::string::npos) {
    handle = dlopen(BesideTheProgram(library).c_str(), kHow);
  }
  if (handle == nullptr) return absl::NotFoundError(LoadError());
  void* const found = dlsym(handle, function.c_str());
  if (found != nullptr) return found;
  return absl::FailedPreconditionError(
      absl::StrCat(library, " is of another version (", LoadError(), ")"));
}

}  // namespace outrider
