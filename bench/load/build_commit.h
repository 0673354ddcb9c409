// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_BUILD_COMMIT_H_
#define OUTRIDER_BENCH_LOAD_BUILD_COMMIT_H_

namespace outrider::bench {

// What this program was built from: "1a2b3c4d5e6f", with "-dirty" where tracked
// files were changed; "unknown" outside of a repository where OUTRIDER_COMMIT
// did not say. Written by cmake/BuildCommit.cmake at each build.
extern const char kBuildCommit[];

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_BUILD_COMMIT_H_
