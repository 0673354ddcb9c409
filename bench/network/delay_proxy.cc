// SPDX-License-Identifier: Apache-2.0
#include "bench/network/delay_proxy.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/types/span.h"
#include "bench/network/relayed_stream.h"
#include "bench/network/socket.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

using Clock = LinkSchedule::Clock;

// A client, the target behind it, and what is on its way between them.
// Confined to the proxy's thread.
class Connection {
 public:
  struct Side {
    Socket socket = {};
    uint32_t events = 0;  // that epoll watches
    bool is_watched = false;
  };

  Connection(Socket client, Socket target, const LinkOptions& link,
             uint64_t number)
      : planned_end_(PlanEnd(link, number)),
        streams_{RelayedStream(LinkSchedule(link, number, 0)),
                 RelayedStream(LinkSchedule(link, number, 1))} {
    sides_[0].socket = std::move(client);
    sides_[1].socket = std::move(target);
  }

  void SetLink(const LinkOptions& link) {
    for (RelayedStream& stream : streams_) stream.SetLink(link);
  }

  // False where the connection is over.
  bool Read(int side) {
    return streams_[side].Read(sides_[side].socket.fd(), Clock::now()) ==
           RelayedStream::Outcome::kOk;
  }
  bool WriteDue(Clock::time_point now) {
    for (int side = 0; side < 2; ++side) {
      if (streams_[side].Write(sides_[1 - side].socket.fd(), now) !=
          RelayedStream::Outcome::kOk) {
        return false;
      }
    }
    return !(streams_[0].is_finished() && streams_[1].is_finished());
  }

  bool MustEnd() const {
    return planned_end_.has_value() && num_bytes() >= planned_end_->num_bytes;
  }
  bool EndsByReset() const { return planned_end_->is_reset; }
  // Closing a socket with unread bytes would send RST in place of FIN.
  void DiscardUnread() {
    std::array<char, 4096> buffer;
    for (Side& side : sides_) {
      while (recv(side.socket.fd(), buffer.data(), buffer.size(), 0) > 0) {
      }
    }
  }
  // Closing with this set sends RST in place of FIN.
  void ResetOnClose() {
    const linger now = {.l_onoff = 1, .l_linger = 0};
    for (Side& side : sides_) {
      setsockopt(side.socket.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }
  }

  // Watches what can bring the connection on, and nothing else.
  void Watch(int epoll, std::array<uint64_t, 2> keys) {
    for (int i = 0; i < 2; ++i) {
      Side& side = sides_[i];
      uint32_t events = (streams_[i].wants_read() ? EPOLLIN : 0U) |
                        (streams_[1 - i].is_blocked() ? EPOLLOUT : 0U);
      // A hang-up is told whether asked for or not: once is enough.
      if (events == 0) events = EPOLLET;
      if (side.is_watched && events == side.events) continue;
      epoll_event event = {.events = events, .data = {.u64 = keys[i]}};
      epoll_ctl(epoll, side.is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                side.socket.fd(), &event);
      side.events = events;
      side.is_watched = true;
    }
  }

  // Blocked ones are epoll's to wake.
  std::optional<Clock::time_point> NextArrival() const {
    std::optional<Clock::time_point> next;
    for (const RelayedStream& stream : streams_) {
      const auto arrival = stream.NextArrival();
      if (!arrival || stream.is_blocked()) continue;
      next = next ? std::min(*next, *arrival) : *arrival;
    }
    return next;
  }
  uint64_t num_bytes() const {
    return streams_[0].num_bytes_written() + streams_[1].num_bytes_written();
  }

 private:
  const std::optional<PlannedEnd> planned_end_;
  std::array<Side, 2> sides_;
  std::array<RelayedStream, 2> streams_;  // from sides_[i] to the other one
};

}  // namespace

class DelayProxy::Relay {
 public:
  Relay(SocketAddress target, Socket listener, std::string address,
        const LinkOptions& link)
      : target_(target),
        listener_(std::move(listener)),
        address_(std::move(address)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        link_(link),
        thread_([this] { Run(); }) {}
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    {
      MutexLock lock(mu_);
      ending_ = true;
    }
    Wake();
  }

  const std::string& address() const { return address_; }
  void SetLink(const LinkOptions& link) {
    {
      MutexLock lock(mu_);
      link_ = link;
      link_changed_ = true;
    }
    Wake();
  }
  Counters counters() const {
    MutexLock lock(mu_);
    return counters_;
  }

 private:
  // What epoll's events name; connections have two of their own each.
  static constexpr uint64_t kListener = 0;
  static constexpr uint64_t kWake = 1;
  static constexpr uint64_t kFirstConnection = 2;
  static std::array<uint64_t, 2> Keys(uint64_t number) {
    return {kFirstConnection + 2 * number, kFirstConnection + 2 * number + 1};
  }

  struct Entry {
    Connection connection;
    bool is_broken = false;
    std::optional<Clock::time_point> timer = {};  // as in timers_
  };

  void Wake() { eventfd_write(wake_.fd(), 1); }
  void Run();
  bool TakeChanges();  // false: the end
  int Wait(absl::Span<epoll_event> events);
  void Handle(const epoll_event& event);
  void Accept();
  void Deliver();
  // Gives on what is due, and ends the connection where its time has come.
  void Serve(uint64_t number, Clock::time_point now);
  void SetTimer(uint64_t number, Entry& entry,
                std::optional<Clock::time_point> arrival);
  void Count(const Connection& ended, bool is_planned);

  const SocketAddress target_;
  const Socket listener_;
  const std::string address_;
  const Socket epoll_;
  const Socket wake_;

  // The thread's own.
  std::map<uint64_t, Entry> connections_;
  std::set<std::pair<Clock::time_point, uint64_t>> timers_;
  std::set<uint64_t> touched_;  // by an event, since the last Deliver
  uint64_t num_accepted_ = 0;
  LinkOptions current_link_;

  mutable Mutex mu_;
  LinkOptions link_ ABSL_GUARDED_BY(mu_);
  bool link_changed_ ABSL_GUARDED_BY(mu_) = true;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  Counters counters_ ABSL_GUARDED_BY(mu_);

  std::jthread thread_;  // last: ends before what it uses
};

void DelayProxy::Relay::Run() {
  // The kernel may wake us late by this much to save power; 50 us otherwise.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  for (const auto& [fd, key] :
       {std::pair(listener_.fd(), kListener), std::pair(wake_.fd(), kWake)}) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = key}};
    epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event);
  }
  std::array<epoll_event, 64> events;
  int count = 0;
  // A changed link holds for all that is read after the change.
  while (TakeChanges()) {
    for (int i = 0; i < count; ++i) Handle(events[i]);
    Deliver();
    count = Wait(absl::MakeSpan(events));
  }
}

bool DelayProxy::Relay::TakeChanges() {
  MutexLock lock(mu_);
  if (std::exchange(link_changed_, false)) {
    current_link_ = link_;
    for (auto& [number, entry] : connections_) {
      entry.connection.SetLink(link_);
    }
  }
  return !ending_;
}

// Waits until a socket can be used or a block is due; returns how many events.
int DelayProxy::Relay::Wait(absl::Span<epoll_event> events) {
  timespec timeout = {};
  if (!timers_.empty()) {
    const auto left =
        std::max(timers_.begin()->first - Clock::now(), Clock::duration::zero())
            .count();
    timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
  }
  return epoll_pwait2(epoll_.fd(), events.data(),
                      static_cast<int>(events.size()),
                      timers_.empty() ? nullptr : &timeout, nullptr);
}

void DelayProxy::Relay::Handle(const epoll_event& event) {
  const uint64_t key = event.data.u64;
  if (key == kListener) return Accept();
  if (key == kWake) {
    eventfd_t ignored = 0;
    eventfd_read(wake_.fd(), &ignored);
    return;
  }
  const uint64_t number = (key - kFirstConnection) / 2;
  const int side = static_cast<int>((key - kFirstConnection) % 2);
  const auto it = connections_.find(number);
  if (it == connections_.end()) return;
  touched_.insert(number);
  // An error without EPOLLIN shows itself to a read as well.
  if ((event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) {
    it->second.is_broken |= !it->second.connection.Read(side);
  }
}

void DelayProxy::Relay::Accept() {
  while (true) {
    Socket client = AcceptNonBlocking(listener_);
    if (!client.is_open()) return;
    const uint64_t number = num_accepted_++;
    {
      MutexLock lock(mu_);
      ++counters_.num_connections;
    }
    absl::StatusOr<Socket> target = Connect(target_, /*blocks=*/false);
    if (!target.ok()) continue;  // the client sees the connection close
    connections_.emplace(number,
                         Entry{Connection(std::move(client), *std::move(target),
                                          current_link_, number)});
    touched_.insert(number);
  }
}

void DelayProxy::Relay::Deliver() {
  const Clock::time_point now = Clock::now();
  for (const auto& [arrival, number] : timers_) {
    if (arrival > now) break;
    touched_.insert(number);
  }
  for (const uint64_t number : touched_) Serve(number, now);
  touched_.clear();
}

void DelayProxy::Relay::Serve(uint64_t number, Clock::time_point now) {
  const auto it = connections_.find(number);
  if (it == connections_.end()) return;
  Entry& entry = it->second;
  Connection& connection = entry.connection;
  const bool goes_on = !entry.is_broken && connection.WriteDue(now);
  const bool is_planned = goes_on && connection.MustEnd();
  if (goes_on && !is_planned) {
    connection.Watch(epoll_.fd(), Keys(number));
    SetTimer(number, entry, connection.NextArrival());
    return;
  }
  if (entry.is_broken || (is_planned && connection.EndsByReset())) {
    connection.ResetOnClose();
  } else {
    connection.DiscardUnread();
  }
  Count(connection, is_planned);
  SetTimer(number, entry, std::nullopt);
  connections_.erase(it);
}

void DelayProxy::Relay::SetTimer(uint64_t number, Entry& entry,
                                 std::optional<Clock::time_point> arrival) {
  if (entry.timer == arrival) return;
  if (entry.timer) timers_.erase({*entry.timer, number});
  if (arrival) timers_.insert({*arrival, number});
  entry.timer = arrival;
}

void DelayProxy::Relay::Count(const Connection& ended, bool is_planned) {
  MutexLock lock(mu_);
  counters_.num_bytes += ended.num_bytes();
  if (!is_planned) return;
  ++(ended.EndsByReset() ? counters_.num_reset : counters_.num_dropped);
}

absl::StatusOr<std::unique_ptr<DelayProxy>> DelayProxy::Start(
    const Options& options) {
  OUTRIDER_RETURN_IF_ERROR(CheckLink(options.link));
  OUTRIDER_ASSIGN_OR_RETURN(const SocketAddress target,
                            Resolve(options.target));
  std::string address;
  OUTRIDER_ASSIGN_OR_RETURN(Socket listener, ListenOnLoopback(address));
  return std::unique_ptr<DelayProxy>(new DelayProxy(std::make_unique<Relay>(
      target, std::move(listener), std::move(address), options.link)));
}

DelayProxy::DelayProxy(std::unique_ptr<Relay> relay)
    : relay_(std::move(relay)) {}
DelayProxy::~DelayProxy() = default;

const std::string& DelayProxy::address() const { return relay_->address(); }

absl::Status DelayProxy::SetLink(const LinkOptions& link) {
  OUTRIDER_RETURN_IF_ERROR(CheckLink(link));
  relay_->SetLink(link);
  return absl::OkStatus();
}

DelayProxy::Counters DelayProxy::counters() const { return relay_->counters(); }

}  // namespace outrider::bench
