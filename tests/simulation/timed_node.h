// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_TIMED_NODE_H_
#define OUTRIDER_TESTS_SIMULATION_TIMED_NODE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "core/base/session_id.h"
#include "core/engine/pass_hold.h"
#include "core/engine/pass_time.h"

namespace outrider {

// What happens when, in virtual seconds.
class Agenda {
 public:
  double now() const { return now_; }
  void At(double time, std::function<void()> what) {
    events_.push({time, num_events_++, std::move(what)});
  }
  void RunNext() {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    event.what();
  }

 private:
  struct Event {
    double time = 0;
    int64_t number = 0;  // what is at one time comes in the order of entry
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };

  double now_ = 0;
  int64_t num_events_ = 0;
  std::priority_queue<Event> events_;
};

// A node whose passes take time and compute nothing: one after another, each of
// all that waits, held for who is expected by the real rule; of work ahead what
// is cheap beside others, as ReadyWork has it.
class TimedNode {
 public:
  // Seconds in passes, the share of the call's own rows, and beside them.
  struct Time {
    double seconds = 0;
    double own_seconds = 0;
    double queue_seconds = 0;
  };

  // Steps of so many rows, one after another.
  struct Call {
    int session = 0;
    std::vector<int> rows = {};
    bool is_ahead = false;
    bool is_joined = false;  // but for its last step it stays (Want)
    std::function<void(const Time&)> done = {};
  };

  // What a pass takes, in seconds.
  struct Costs {
    double pass = 0;
    double row = 0;   // more for each
    double tile = 0;  // more for each tile of rows after the first
    int tile_rows = 1;
    double Seconds(int num_rows) const {
      return pass + row * num_rows + tile * ((num_rows - 1) / tile_rows);
    }
  };

  TimedNode(Agenda& agenda, const Costs& costs)
      : agenda_(agenda), costs_(costs) {}

  void Submit(Call call);

 private:
  using Clock = PassHold::Clock;
  struct Job {
    Call call = {};
    size_t num_done = 0;  // steps
    Time time = {};
    double submitted = 0;
    int next() const { return call.rows[num_done]; }
    bool is_last() const { return num_done + 1 == call.rows.size(); }
  };

  Clock::time_point Now() const;
  void Look();
  void RunPass();
  std::vector<Job> TakeNext();
  void EndPass(std::vector<Job> jobs, double seconds, int num_rows);

  Agenda& agenda_;
  const Costs costs_;
  std::deque<Job> running_;
  std::deque<Job> ahead_;
  int num_passed_over_ = 0;
  bool is_passing_ = false;
  PassTime pass_time_;
  PassHold hold_{1};
  std::map<int, double> answered_;       // when each session last was
  std::map<int, double> usual_returns_;  // seconds
};

}  // namespace outrider

#endif  // OUTRIDER_TESTS_SIMULATION_TIMED_NODE_H_
