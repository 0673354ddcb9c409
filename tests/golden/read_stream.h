// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_GOLDEN_READ_STREAM_H_
#define OUTRIDER_TESTS_GOLDEN_READ_STREAM_H_

#include "client/generation_client.h"
#include "core/base/token.h"
#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace outrider::testing {

// What one stream gave.
struct ReadStream {
  TokenSeq tokens = {};
  int num_drafted = 0;
  int num_accepted = 0;
  int num_draft_failures = 0;
};

// Reads it to its end, which must be a good one, without a miss.
inline ReadStream ReadToTheEnd(client::GenerationStream& stream) {
  ReadStream read;
  while (true) {
    const auto update = stream.Next();
    EXPECT_THAT(update, IsOk());
    if (!update.ok() || !update->has_value()) break;
    for (const auto& token : (*update)->tokens) read.tokens.push_back(token.id);
    if (const auto& round = (*update)->round) {
      read.num_drafted += round->num_drafted;
      read.num_accepted += round->num_accepted;
    }
    if (const auto& finish = (*update)->finish) {
      EXPECT_EQ(finish->num_misses, 0);
      read.num_draft_failures = finish->num_draft_failures;
    }
  }
  return read;
}

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_GOLDEN_READ_STREAM_H_
