// SPDX-License-Identifier: Apache-2.0
#include "core/base/open_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

std::vector<std::string> PlacesOf(const std::string& library, LookFirst first) {
  if (absl::StrContains(library, '/')) return {library};
  if (first == LookFirst::kBesideProgram) {
    return {BesideTheProgram(library), library};
  }
  return {library, BesideTheProgram(library)};
}

}  // namespace

absl::StatusOr<void*> OpenLibrary(const std::string& library,
                                  const std::string& function,
                                  LookFirst first) {
  void* handle = nullptr;
  std::vector<std::string> reasons;
  for (const std::string& place : PlacesOf(library, first)) {
    handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
    // One place may have it, and not what it needs itself.
    reasons.push_back(LoadError());
  }
  if (handle == nullptr) {
    return absl::NotFoundError(absl::StrJoin(reasons, "; "));
  }
  void* const found = dlsym(handle, function.c_str());
  if (found != nullptr) return found;
  return absl::FailedPreconditionError(
      absl::StrCat(library, " is of another version (", LoadError(), ")"));
}

}  // namespace outrider
