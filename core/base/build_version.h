// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_BUILD_VERSION_H_
#define OUTRIDER_CORE_BASE_BUILD_VERSION_H_

namespace outrider {

// What this program was built from. cmake/BuildVersion.cmake writes both at
// each build.

// "1a2b3c4d5e6f", with "-dirty" where tracked files were changed; "unknown"
// outside of a repository where OUTRIDER_COMMIT did not say.
extern const char kBuildCommit[];

// The release and the commit: "0.1.0 1a2b3c4d5e6f".
extern const char kBuildVersion[];

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_BUILD_VERSION_H_
