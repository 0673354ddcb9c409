// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/timed_node.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>

namespace outrider {
namespace {

using Clock = PassHold::Clock;

constexpr double kMostAhead = 0.5;  // of what a pass costs besides its rows
constexpr int kMostPassedOver = 4;

SessionId IdOf(int session) {
  SessionId id;
  std::memcpy(id.bytes.data(), &session, sizeof session);
  id.bytes.back() = 1;  // never none
  return id;
}

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

Clock::time_point TimedNode::Now() const {
  return Clock::time_point(std::chrono::hours(1) + Seconds(agenda_.now()));
}

void TimedNode::Submit(Call call) {
  const int session = call.session;
  hold_.Forget(IdOf(session));
  if (const auto last = answered_.find(session); last != answered_.end()) {
    double& usual = usual_returns_[session];
    usual = (usual + agenda_.now() - last->second) / 2;
  }
  (call.is_ahead ? ahead_ : running_)
      .push_back({.call = std::move(call), .submitted = agenda_.now()});
  Look();
}

void TimedNode::Look() {
  // All that happens at this time comes first.
  agenda_.At(agenda_.now(), [this] {
    if (is_passing_) return;
    if (running_.empty() && ahead_.empty()) {
      hold_.NothingToRun();
      return;
    }
    const bool anybody_stays = std::any_of(
        running_.begin(), running_.end(),
        [](const Job& job) { return job.call.is_joined && !job.is_last(); });
    hold_.set_ready({.num_sessions = static_cast<int>(running_.size()),
                     .anybody_stays = anybody_stays});
    if (!hold_.Holds(Now(), pass_time_)) {
      RunPass();
      return;
    }
    const std::chrono::duration<double> left = *hold_.end() - Now();
    agenda_.At(agenda_.now() + left.count() + 1e-9, [this] { Look(); });
  });
}

void TimedNode::RunPass() {
  hold_.PassBegins(Now());
  is_passing_ = true;
  std::vector<Job> jobs = TakeNext();
  int num_rows = 0;
  for (const Job& job : jobs) num_rows += job.next();
  const double seconds = costs_.Seconds(num_rows);
  pass_time_.Observe(num_rows, Seconds(seconds));
  agenda_.At(agenda_.now() + seconds,
             [this, seconds, num_rows, taken = std::move(jobs)] {
               EndPass(taken, seconds, num_rows);
             });
}

std::vector<TimedNode::Job> TimedNode::TakeNext() {
  std::vector<Job> jobs(std::make_move_iterator(running_.begin()),
                        std::make_move_iterator(running_.end()));
  running_.clear();
  int budget = jobs.empty() ? 1 << 20 : pass_time_.RowsOf(kMostAhead);
  bool is_due = jobs.empty() || num_passed_over_ >= kMostPassedOver;
  num_passed_over_ = ahead_.empty() ? 0 : num_passed_over_ + 1;
  while (!ahead_.empty() && (is_due || ahead_.front().next() <= budget)) {
    budget -= ahead_.front().next();
    jobs.push_back(std::move(ahead_.front()));
    ahead_.pop_front();
    is_due = false;
    num_passed_over_ = 0;
  }
  return jobs;
}

void TimedNode::EndPass(std::vector<Job> jobs, double seconds, int num_rows) {
  is_passing_ = false;
  for (Job& job : jobs) {
    job.time.seconds += seconds;
    job.time.own_seconds += seconds * job.next() / num_rows;
    if (!job.is_last()) {
      ++job.num_done;
      (job.call.is_ahead ? ahead_ : running_).push_back(std::move(job));
      continue;
    }
    const int session = job.call.session;
    answered_[session] = agenda_.now();
    hold_.Expect(IdOf(session), Now(), Seconds(usual_returns_[session]));
    job.time.queue_seconds = agenda_.now() - job.submitted - job.time.seconds;
    job.call.done(job.time);
  }
  Look();
}

}  // namespace outrider
