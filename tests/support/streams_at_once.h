// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_STREAMS_AT_ONCE_H_
#define OUTRIDER_TESTS_SUPPORT_STREAMS_AT_ONCE_H_

#include <functional>
#include <vector>

#include "client/generation_client.h"

namespace outrider::testing {

// So many that a pass of the target serves several, so few that each finds its
// drafter in time.
inline constexpr size_t kStreamsAtOnce = 4;

// Runs all requests, at most kStreamsAtOnce of them at the same time, and calls
// `read(i, stream)` for each in its order; it must read the stream to its end.
void GenerateInOrder(
    client::GenerationClient& client,
    const std::vector<client::GenerationRequest>& requests,
    const std::function<void(size_t, client::GenerationStream&)>& read);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_STREAMS_AT_ONCE_H_
