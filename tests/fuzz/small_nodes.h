// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_FUZZ_SMALL_NODES_H_
#define OUTRIDER_TESTS_FUZZ_SMALL_NODES_H_

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/round/session.h"
#include "core/session/cache_delta.h"
#include "core/testing/table_lm.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {

// The one session that the seeds' messages are of, and its model.

inline constexpr int kSmallVocabulary = 5;
inline constexpr int kSmallContext = 64;
inline constexpr char kSessionBytes[] = "session---------";

// What seeds write where the node's own incarnation should be.
inline constexpr char kLiveBytes[] = "incarnation-----";

inline TableLm::Options SmallModel() {
  return {.table =
              [](absl::Span<const TokenId> context) {
                std::vector<float> logits(kSmallVocabulary);
                for (int v = 0; v < kSmallVocabulary; ++v) {
                  logits[v] = static_cast<float>((context.back() * 3 + v) % 4);
                }
                return logits;
              },
          .vocab_size = kSmallVocabulary,
          .context_length = kSmallContext};
}

// Step 1: three tokens.
inline RequestHeader Opening() {
  return {.session = SessionId::FromBytes(kSessionBytes),
          .step = 1,
          .delta = {.append_tokens = {1, 2, 3}}};
}

inline void UseLiveIncarnation(const ReplyHeader& opened,
                               RequestHeader& header) {
  if (header.incarnation == Incarnation::FromBytes(kLiveBytes)) {
    header.incarnation = opened.incarnation;
  }
}

// The reply of a node, which has the session already, to anybody's call of it;
// nothing where it refuses that, as it may.
template <typename Node, typename Call>
auto AskNodeWithSession(Node& node, Call call)
    -> std::optional<std::decay_t<decltype(*node.Run(call, 1))>> {
  const auto opened = node.Run({.header = Opening(), .prompt_length = 3}, 1);
  OUTRIDER_CHECK(opened.ok()) << opened.status();
  UseLiveIncarnation(opened->header, call.header);
  auto reply = node.Run(call, 2);
  if (reply.ok()) return *std::move(reply);
  CheckRefusal(reply.status());
  return std::nullopt;
}

// Makes a reply one to this request, in the life that it names or begins.
inline void Echo(const RequestHeader& request, ReplyHeader& reply) {
  reply.session = request.session;
  reply.step = request.step;
  reply.incarnation = request.incarnation.is_none()
                          ? Incarnation::FromBytes(kLiveBytes)
                          : request.incarnation;
}

inline Session::Options SmallSession() {
  return {.id = SessionId::FromBytes(kSessionBytes),
          .prompt = {1, 2, 3},
          .sampling = {.temperature = 0.8},
          .seed = 1,
          .max_length = kSmallContext};
}

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_FUZZ_SMALL_NODES_H_
