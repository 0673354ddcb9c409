// SPDX-License-Identifier: Apache-2.0
// What anybody tells a verifier of a session's cache, or asks of its place for
// suspects: a TruncateRequest, a ReleaseRequest or an IsolateRequest.
#include <algorithm>
#include <chrono>

#include "core/session/suspect_place.h"
#include "core/wire/convert.h"
#include "core/wire/field_convert.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/small_nodes.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {
namespace {

using Node = VerifyNode;

// How many tokens of the one session the node has after `advise`.
template <typename Advise>
size_t LeftAfter(Node& node, const RequestHeader& header, Advise advise) {
  const SessionId session = Opening().session;
  const TokenSeq before = node.Logged(session);
  const bool is_applied = advise(header);
  const TokenSeq after = node.Logged(session);
  OUTRIDER_CHECK(node.sessions().IsConsistent());
  OUTRIDER_CHECK(is_applied ? header.session == session : after == before);
  OUTRIDER_CHECK(after.size() <= before.size());
  OUTRIDER_CHECK(std::equal(after.begin(), after.end(), before.begin()));
  OUTRIDER_CHECK(node.Cached(session) == after);
  return after.size();
}

// `advise`: (node, header) -> how many tokens may be left.
template <typename Request, typename Advise>
void AtTheCache(absl::string_view bytes, Advise advise) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return;
  }
  auto header = FromProto(request);
  if (!header.ok()) {
    CheckRefusal(header.status());
    return;
  }
  OUTRIDER_CHECK(!header->session.is_none());
  OUTRIDER_CHECK(header->delta.keep_length >= 0);
  const auto node = MakeVerifyNode(SmallModel());
  const auto opened = node->Run({.header = Opening(), .prompt_length = 3}, 1);
  OUTRIDER_CHECK(opened.ok()) << opened.status();
  UseLiveIncarnation(opened->header, *header);
  advise(*node, *header);
  // Whatever became of the cache, the session can be opened again.
  RequestHeader again = Opening();
  again.step = std::max<uint64_t>(header->step, again.step);
  if (again.step == UINT64_MAX) return;
  ++again.step;
  OUTRIDER_CHECK(node->Run({.header = again, .prompt_length = 3}, 2).ok());
}

void Truncate(Node& node, const RequestHeader& header) {
  const int length = header.delta.keep_length;
  bool is_applied = false;
  const size_t left = LeftAfter(node, header, [&](const auto& asked) {
    return is_applied = node.Truncate(asked, length);
  });
  OUTRIDER_CHECK(!is_applied || left <= static_cast<size_t>(length));
}

void Release(Node& node, const RequestHeader& header) {
  bool is_applied = false;
  const size_t left = LeftAfter(node, header, [&](const auto& asked) {
    return is_applied = node.Release(asked);
  });
  OUTRIDER_CHECK(!is_applied || left == 0);
}

// Whoever asks first has the place, and it alone, until it is released.
void AtThePlace(absl::string_view bytes) {
  v1::IsolateRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return;
  }
  const auto session = ToId(request.session_id(), "session_id");
  if (!session.ok()) {
    CheckRefusal(session.status());
    return;
  }
  const SessionId other = Opening().session;
  const SuspectPlace::Clock::time_point now{};
  SuspectPlace place;
  OUTRIDER_CHECK(place.Enter(*session, now));
  OUTRIDER_CHECK(place.Enter(other, now) == (*session == other));
  place.Released(*session);
  OUTRIDER_CHECK(place.Enter(other, now));
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider::testing;  // NOLINT: a program of one function
  const absl::string_view bytes = AsText(data, size);
  AtTheCache<outrider::v1::TruncateRequest>(bytes, Truncate);
  AtTheCache<outrider::v1::ReleaseRequest>(bytes, Release);
  AtThePlace(bytes);
  return 0;
}
