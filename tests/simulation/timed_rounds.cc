// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/timed_rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

namespace outrider {
namespace {

constexpr int kMostDrafts = 16;
// How often, of the verdicts that take so many drafts and are drafted for by
// enough outcomes, each outcome is not the one, where those before it are not.
constexpr double kNotTheNext = 0.4;

using Outcome = AheadStats::Outcome;

// How many of the likeliest outcomes, as LikelyOutcomes has them, are verdicts
// that take so many of the drafts.
int NumOutcomesOf(int num_accepted, int num_drafts, double acceptance,
                  int num_outcomes) {
  std::vector<double> next;  // by accepted drafts: the likeliest that is left
  for (int i = 0; i <= num_drafts; ++i) {
    next.push_back(std::pow(acceptance, i) *
                   (i < num_drafts ? 1 - acceptance : 1));
  }
  int count = 0;
  for (int i = 0; i < num_outcomes; ++i) {
    const auto likeliest = std::max_element(next.begin(), next.end());
    *likeliest *= kNotTheNext;
    if (likeliest - next.begin() == num_accepted) ++count;
  }
  return count;
}

}  // namespace

double TimedWorld::Tokens(int k) const {
  return (1 - std::pow(acceptance, k + 1)) / (1 - acceptance);
}

std::string TimedWorld::Name() const {
  return absl::StrFormat(
      "%g ms, acceptance %g, %d users, pass %g, tiles of %d rows %g, draft %g",
      round_trip * 1e3, acceptance, num_users, pass * 1e3, tile_rows,
      tile * 1e3, draft * 1e3);
}

TimedRounds::TimedRounds(const TimedWorld& world, const TimedWay& way,
                         uint32_t seed)
    : world_(world),
      way_(way),
      generator_(seed),
      drafter_(agenda_, {.pass = world.draft, .row = world.draft_row}),
      verifier_(agenda_, {.pass = world.pass,
                          .row = world.row,
                          .tile = world.tile,
                          .tile_rows = world.tile_rows}),
      control_(way.schedule) {
  Join(world.num_users);
}

void TimedRounds::Join(int num_users) {
  for (int i = 0; i < num_users; ++i) {
    User& user = users_.emplace_back(
        User{.number = static_cast<int>(users_.size()),
             .run = MeasuredRunLength(MeasuredRunLength::kDefaultMost, [this] {
               return way_.is_by_control ? control_.MayHaveCompany()
                                         : users_.size() > 1;
             })});
    agenda_.At(agenda_.now() + 0.0001 * i, [this, &user] { Begin(user); });
  }
}

double TimedRounds::Run(int num_rounds) {
  const double begin = agenda_.now();
  tokens_ = 0;
  num_rounds_ = 0;
  while (num_rounds_ < num_rounds) agenda_.RunNext();
  return tokens_ / (agenda_.now() - begin);
}

DraftLengthControl::Choice TimedRounds::Choose() const {
  if (!way_.is_by_control) return {.num_drafts = way_.k};
  return control_.Choose(kMostDrafts, DraftLengthMode::kAuto);
}

DraftLengthControl::Choice TimedRounds::ChooseAhead() const {
  if (!way_.is_by_control) return {.num_drafts = way_.is_ahead ? way_.k : 0};
  if (way_.schedule == Schedule::kSequential) return {};
  return control_.ChooseAhead(kMostDrafts, DraftLengthMode::kAuto);
}

void TimedRounds::Begin(User& user) {
  user.began = agenda_.now();
  user.round = {};
  if (!user.was_asked) {
    user.choice = Choose();
    DraftInTurn(user);
  } else if (user.is_done) {
    TakeAhead(user);
  } else {
    user.waits = true;
  }
}

void TimedRounds::TakeAhead(User& user) {
  user.was_asked = false;
  user.waits = false;
  user.ahead.wait_seconds = agenda_.now() - user.began;
  const int count = NumOutcomesOf(user.ahead.num_accepted, user.ahead_in_flight,
                                  world_.acceptance, user.ahead_outcomes);
  const double hits =
      (user.ahead.all_stood ? world_.hits_of_all : world_.hits_of_refused) *
      (1 - std::pow(kNotTheNext, count));
  const bool is_hit = std::bernoulli_distribution(hits)(generator_);
  user.ahead.outcome = is_hit ? Outcome::kHit : Outcome::kMiss;
  user.round.ahead = user.ahead;
  user.round.drafter.call_seconds = user.ahead.wait_seconds;
  if (is_hit) {
    user.choice = user.ahead_choice;
    user.round.num_drafted = user.choice.num_drafts;
    Verify(user);
  } else {
    user.choice = Choose();
    DraftInTurn(user);
  }
}

void TimedRounds::DraftInTurn(User& user) {
  const int k = user.choice.num_drafts;
  user.round.num_drafted = k;
  if (k == 0) {
    Verify(user);
    return;
  }
  const double asked = agenda_.now();
  const double more = user.follows_drafts ? 0 : world_.first_draft;
  agenda_.At(asked + world_.round_trip / 2, [this, &user, asked, more, k] {
    drafter_.Submit(
        {.session = user.number,
         .rows = std::vector<int>(k, 1),
         .done = [this, &user, asked, more](const TimedNode::Time& time) {
           user.round.drafter.compute_seconds = time.seconds + more;
           agenda_.At(agenda_.now() + more + world_.round_trip / 2,
                      [this, &user, asked] {
                        user.round.drafter.call_seconds +=
                            agenda_.now() - asked;
                        Verify(user);
                      });
         }});
  });
}

void TimedRounds::Verify(User& user) {
  user.verify_began = agenda_.now();
  AskAhead(user);
  RoundStats& round = user.round;
  round.num_more = round.num_drafted == 0 ? user.run.Next() - 1 : 0;
  const double jitter = std::uniform_real_distribution(0.9, 1.1)(generator_);
  const double one_way = jitter * world_.round_trip / 2;
  agenda_.At(agenda_.now() + one_way, [this, &user, one_way] {
    std::vector<int> rows(user.round.num_passes(), user.round.num_drafted + 1);
    verifier_.Submit(
        {.session = user.number,
         .rows = std::move(rows),
         .is_joined = true,
         .done = [this, &user, one_way](const TimedNode::Time& time) {
           agenda_.At(agenda_.now() + one_way,
                      [this, &user, time] { End(user, time); });
         }});
  });
}

void TimedRounds::AskAhead(User& user) {
  const int num_in_flight = user.round.num_drafted;
  user.ahead_choice = num_in_flight > 0 ? ChooseAhead() : Choice{};
  const int k = user.ahead_choice.num_drafts;
  user.choice.drafts_ahead = k > 0;
  if (k == 0) return;
  const int outcomes = outcomes_.value();
  user.ahead_outcomes = outcomes;
  user.ahead_in_flight = num_in_flight;
  std::vector<int> rows(k + 1, outcomes);
  rows[0] = num_in_flight + 1;
  user.was_asked = true;
  user.is_done = false;
  const double asked = agenda_.now();
  user.ahead = {
      .num_drafted = k * outcomes, .num_outcomes = outcomes, .longest = k};
  agenda_.At(asked + world_.round_trip / 2, [this, &user, asked, rows] {
    drafter_.Submit({.session = user.number,
                     .rows = rows,
                     .is_ahead = true,
                     .done = [this, &user, asked](const TimedNode::Time& time) {
                       user.ahead.compute_seconds = time.seconds;
                       agenda_.At(agenda_.now() + world_.round_trip / 2,
                                  [this, &user, asked] {
                                    user.ahead.call_seconds =
                                        agenda_.now() - asked;
                                    user.is_done = true;
                                    if (user.waits) TakeAhead(user);
                                  });
                     }});
  });
}

void TimedRounds::End(User& user, const TimedNode::Time& computed) {
  RoundStats& round = user.round;
  std::bernoulli_distribution stands(world_.acceptance);
  while (round.num_accepted < round.num_drafted && stands(generator_)) {
    ++round.num_accepted;
  }
  round.verifier = {.call_seconds = agenda_.now() - user.verify_began,
                    .compute_seconds = computed.seconds,
                    .own_seconds = computed.own_seconds,
                    .queue_seconds = computed.queue_seconds};
  round.round_seconds = agenda_.now() - user.began;
  user.ahead.num_accepted = round.num_accepted;
  user.ahead.all_stood = round.num_accepted == round.num_drafted;
  outcomes_.Learn(round);
  user.run.Learn({.link = round.verifier,
                  .num_drafts = round.num_drafted,
                  .num_passes = round.num_passes()});
  round.next_run = user.run.Next();
  tokens_ += world_.Tokens(round.num_drafted) + round.num_more;
  ++num_rounds_;
  const bool follows_drafts =
      std::exchange(user.follows_drafts, round.num_drafted > 0);
  if (way_.is_by_control) {
    user.choice.follows_drafts = follows_drafts;
    user.choice.after = user.last_round;
    user.last_round = control_.Learn(user.choice, round);
  }
  Begin(user);
}

}  // namespace outrider
