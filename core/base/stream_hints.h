// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_STREAM_HINTS_H_
#define OUTRIDER_CORE_BASE_STREAM_HINTS_H_

#include <netdb.h>

namespace outrider {

// What getaddrinfo is asked for: addresses of either family for streams, and
// a port that is a number.
inline constexpr addrinfo kStreamHints = {.ai_flags = AI_NUMERICSERV,
                                          .ai_family = AF_UNSPEC,
                                          .ai_socktype = SOCK_STREAM,
                                          .ai_protocol = 0,
                                          .ai_addrlen = 0,
                                          .ai_addr = nullptr,
                                          .ai_canonname = nullptr,
                                          .ai_next = nullptr};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_STREAM_HINTS_H_
