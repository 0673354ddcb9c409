// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_OPEN_LIBRARY_H_
#define OUTRIDER_CORE_BASE_OPEN_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"

namespace outrider {

// Where a library without a path is looked for first: where the system looks
// (LD_LIBRARY_PATH), or in ../lib beside the program; then at the other place.
enum class LookFirst { kWhereSystemDoes, kBesideProgram };

// A function of a library that no program needs to start: for what is large, or
// may be missing. It stays loaded. The function's name changes whenever a type
// does that passes between the two, as both are of one build.
//   NOT_FOUND            the library cannot be loaded: what the loader said of
//                        each place
//   FAILED_PRECONDITION  it is of another version
absl::StatusOr<void*> OpenLibrary(const std::string& library,
                                  const std::string& function, LookFirst first);

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_OPEN_LIBRARY_H_
