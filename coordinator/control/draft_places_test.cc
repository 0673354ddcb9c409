// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/draft_places.h"

#include <cstdint>
#include <random>

#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr int kNumPlaces = DraftPlaces::kMostDrafts;

// How many of the drafts stand, where each does so often.
class DrawnTexts {
 public:
  explicit DrawnTexts(uint32_t seed) : random_(seed) {}
  DraftPlaces::Drafts Next(double acceptance) {
    std::bernoulli_distribution stands(acceptance);
    DraftPlaces::Drafts drafts = {.num_asked = kNumPlaces,
                                  .num_made = kNumPlaces};
    while (drafts.num_accepted < kNumPlaces && stands(random_)) {
      ++drafts.num_accepted;
    }
    return drafts;
  }

 private:
  std::mt19937 random_;
};

// A few refused drafts in a dozen are no sign of another text: with each alarm
// what is known of all places is forgotten.
TEST(DraftPlacesTest, DraftsThatNearlyAllStandAreSeldomTakenForOthersByChance) {
  int num_lost = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    DrawnTexts texts(seed);
    DraftPlaces places;
    for (int i = 0; i < 100; ++i) places.Learn(texts.Next(0.95));
    bool was_known = true;
    for (int i = 0; i < 1000; ++i) {
      places.Learn(texts.Next(0.95));
      const bool is_known = places.Tokens(1) > 1.8;
      if (was_known && !is_known) ++num_lost;
      was_known = is_known;
    }
  }
  EXPECT_LE(num_lost, 5);
}

TEST(DraftPlacesTest, ATextThatBecomesHardIsSeenWithinADozenRounds) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    DrawnTexts texts(seed);
    DraftPlaces places;
    for (int i = 0; i < 500; ++i) places.Learn(texts.Next(0.95));
    for (int i = 0; i < 12; ++i) places.Learn(texts.Next(0.1));
    EXPECT_LT(places.Tokens(1), 1.5) << seed;
  }
}

}  // namespace
}  // namespace outrider
