// SPDX-License-Identifier: Apache-2.0
#include "bench/load/core_placement.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"

namespace outrider::bench {

absl::StatusOr<CorePlacement> PlaceOnCores(const Cores& cores,
                                           int num_threads) {
  if (num_threads < 1) {
    return absl::InvalidArgumentError(
        "--bind-cores needs --threads: the cores of each node");
  }
  const auto num_left = static_cast<int>(cores.size()) - num_threads;
  if (num_left < num_threads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--bind-cores gives each node a core for each of its ",
                     num_threads, " threads, and this process may use ",
                     cores.size(), ": pass a lower --threads"));
  }
  const auto verifiers = cores.end() - num_threads;
  const auto drafters = verifiers - num_threads;
  const Cores left(cores.begin(), drafters);
  CorePlacement placement = {.verifier = Cores(verifiers, cores.end()),
                             .drafter = Cores(drafters, verifiers)};
  placement.others = left.empty() ? placement.drafter : left;
  return placement;
}

std::string ToString(const CorePlacement& placement) {
  return absl::StrCat("verifier ", absl::StrJoin(placement.verifier, " "),
                      ", drafter ", absl::StrJoin(placement.drafter, " "),
                      ", all else ", absl::StrJoin(placement.others, " "));
}

cpu_set_t SetOf(const Cores& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

absl::StatusOr<Cores> CoresOfThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot see which cores are ours: ", std::strerror(errno)));
  }
  Cores cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

absl::Status KeepThisThreadOn(const Cores& cores) {
  const cpu_set_t set = SetOf(cores);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot run on cores ",
                                               absl::StrJoin(cores, " "), ": ",
                                               std::strerror(errno)));
  }
  OUTRIDER_ASSIGN_OR_RETURN(const Cores allowed, CoresOfThisThread());
  if (allowed == cores) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("of the cores ", absl::StrJoin(cores, " "),
                   " this process may use ", absl::StrJoin(allowed, " ")));
}

}  // namespace outrider::bench
