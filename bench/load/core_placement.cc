// SPDX-License-Identifier: Apache-2.0
#include "bench/load/core_placement.h"

#include <sched.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outrider::bench {

absl::StatusOr<CorePlacement> PlaceOnCores(const Cores& cores,
                                           int num_threads) {
  const auto num_left = static_cast<int>(cores.size()) - num_threads;
  if (num_threads < 1 || num_left < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--bind-cores gives the verifier a core for each of its --threads and "
        "the others at least one: here are ",
        cores.size(), ", and --threads is ", num_threads));
  }
  const auto verifiers = cores.end() - num_threads;
  const bool all_have_own = num_left > num_threads;
  const auto drafters = all_have_own ? verifiers - num_threads : cores.begin();
  return CorePlacement{
      .verifier = Cores(verifiers, cores.end()),
      .drafter = Cores(drafters, verifiers),
      .others = Cores(cores.begin(), all_have_own ? drafters : verifiers)};
}

std::string ToString(const CorePlacement& placement) {
  return absl::StrCat("verifier ", absl::StrJoin(placement.verifier, " "),
                      ", drafter ", absl::StrJoin(placement.drafter, " "),
                      ", all else ", absl::StrJoin(placement.others, " "));
}

Cores CoresOfThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  Cores cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

absl::Status KeepThisThreadOn(const Cores& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot run on cores ",
                                          absl::StrJoin(cores, " "), ": ",
                                          std::strerror(errno)));
}

}  // namespace outrider::bench
