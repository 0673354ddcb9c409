// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_BECOME_H_
#define OUTRIDER_BENCH_NETWORK_BECOME_H_

#include <string>
#include <vector>

namespace outrider::bench {

// Pointers into `words`, and the null at their end, as exec wants them.
std::vector<char*> ArgumentsOf(const std::vector<std::string>& words);

// Runs a program in a child's place, between fork and exec, where nothing but
// system calls may be made: with no signal blocked, and killed should the
// thread that forked it die. Where it cannot run, standard error says why.
[[noreturn]] void Become(char* const* arguments);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_BECOME_H_
