// SPDX-License-Identifier: Apache-2.0
#include "bench/network/tunnel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/network/echo.h"
#include "bench/network/system_error.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

constexpr absl::string_view kDeviceCapability = "CAP_NET_ADMIN";

using Clock = LinkSchedule::Clock;

constexpr size_t kMaxPacketBytes = 1500;  // Ethernet's

absl::Status CheckOptions(const TunnelOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(CheckLink(options.link));
  if (options.link.mean_bytes_to_drop != 0 ||
      options.link.mean_bytes_to_reset != 0) {
    return absl::InvalidArgumentError(
        "a tunnel knows packets, not connections: it drops and resets none");
  }
  if (!(options.loss >= 0 && options.loss < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss must be in [0, 1), not ", options.loss));
  }
  if (options.network < 0 || options.network > 255) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the network's number must be 0 to 255, not ", options.network));
  }
  return absl::OkStatus();
}

sockaddr Ipv4(const std::string& host) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  sockaddr generic = {};
  std::memcpy(&generic, &address, sizeof(generic));
  return generic;
}

// Whether some device of this namespace has the address already: a second
// route to it would make one of them unreachable.
bool IsTaken(const std::string& host) {
  const Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr address = Ipv4(host);
  return bind(socket.fd(), &address, sizeof(address)) == 0;
}

// A TUN device of the calling thread's namespace, up, with this address; it is
// there as long as the descriptor is.
absl::StatusOr<Socket> OpenDevice(const std::string& host) {
  if (IsTaken(host)) {
    return absl::UnavailableError(absl::StrCat(
        host, " is in use on this machine: choose another network number"));
  }
  Socket device(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!device.is_open()) {
    return SystemError("open /dev/net/tun", kDeviceCapability);
  }
  ifreq request = {};
  std::strcpy(request.ifr_name, "outrider%d");  // the kernel numbers it
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(device.fd(), TUNSETIFF, &request) != 0) {
    return SystemError("make a TUN device", kDeviceCapability);
  }
  const Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  request.ifr_addr = Ipv4(host);
  if (ioctl(socket.fd(), SIOCSIFADDR, &request) != 0) {
    return SystemError(absl::StrCat("give a TUN device the address ", host),
                       kDeviceCapability);
  }
  request.ifr_netmask = Ipv4("255.255.255.0");
  if (ioctl(socket.fd(), SIOCSIFNETMASK, &request) != 0) {
    return SystemError("set a TUN device's netmask", kDeviceCapability);
  }
  request.ifr_mtu = kMaxPacketBytes;
  if (ioctl(socket.fd(), SIOCSIFMTU, &request) != 0) {
    return SystemError("set a TUN device's packet size", kDeviceCapability);
  }
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket.fd(), SIOCSIFFLAGS, &request) != 0) {
    return SystemError("bring a TUN device up", kDeviceCapability);
  }
  return device;
}

absl::StatusOr<Socket> OpenDeviceIn(const NetworkNamespace& space,
                                    const std::string& host) {
  OUTRIDER_ASSIGN_OR_RETURN(const ScopedNamespace entered,
                            ScopedNamespace::Enter(space));
  return OpenDevice(host);
}

}  // namespace

// Reads packets from one device and writes them into the other when they are
// due.
class Tunnel::Direction {
 public:
  // `number`: 0 or 1, for the coins.
  Direction(Socket from, int to, const TunnelOptions& options, int number)
      : from_(std::move(from)),
        to_(to),
        wake_(eventfd(0, EFD_CLOEXEC)),
        options_(options),
        schedule_(options.link, /*connection=*/0, number),
        random_(options.link.seed * 2 + number) {}
  Direction(const Direction&) = delete;
  Direction& operator=(const Direction&) = delete;
  ~Direction() { Stop(); }

  int device() const { return from_.fd(); }
  void Start() {
    thread_ = std::jthread([this] { Run(); });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    eventfd_write(wake_.fd(), 1);
    thread_.join();
  }
  void SetLink(const LinkOptions& link) {
    MutexLock lock(mu_);
    schedule_.SetLink(link);
  }
  void AddTo(Counters& counters) const {
    counters.num_packets += num_packets_.load(std::memory_order_relaxed);
    counters.num_lost += num_lost_.load(std::memory_order_relaxed);
    counters.num_overflowed += num_overflowed_.load(std::memory_order_relaxed);
  }

 private:
  struct Packet {
    Clock::time_point due;
    std::vector<char> bytes;
  };

  void Run() {
    // Timers are otherwise late by 50 us, each way.
    prctl(PR_SET_TIMERSLACK, 1UL);
    // A network does not wait for a busy machine's other work: this thread runs
    // for microseconds at a time, before all others, where that is allowed.
    const sched_param first = {.sched_priority = 1};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
    while (true) {
      Deliver();
      std::array<pollfd, 2> polled = {
          {{wake_.fd(), POLLIN, 0}, {from_.fd(), POLLIN, 0}}};
      timespec wait = {};
      const bool is_limited = !packets_.empty();
      if (is_limited) wait = UntilDue();
      ppoll(polled.data(), polled.size(), is_limited ? &wait : nullptr,
            nullptr);
      if (polled[0].revents != 0) return;
      if (polled[1].revents != 0) Take();
    }
  }

  timespec UntilDue() const {
    const int64_t ns = std::max<int64_t>(
        0,
        std::chrono::nanoseconds(packets_.front().due - Clock::now()).count());
    return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }

  void Deliver() {
    while (!packets_.empty() && packets_.front().due <= Clock::now()) {
      const std::vector<char>& bytes = packets_.front().bytes;
      // A full device loses it, as a full network card does.
      const bool is_there = write(to_, bytes.data(), bytes.size()) ==
                            static_cast<ssize_t>(bytes.size());
      (is_there ? num_packets_ : num_overflowed_)
          .fetch_add(1, std::memory_order_relaxed);
      queued_bytes_ -= bytes.size();
      packets_.pop_front();
    }
  }

  // What is there now; no more than a batch, so that due packets do not wait.
  void Take() {
    constexpr int kBatch = 64;
    std::array<char, kMaxPacketBytes> buffer;
    for (int i = 0; i < kBatch; ++i) {
      const ssize_t count = read(from_.fd(), buffer.data(), buffer.size());
      if (count <= 0) return;
      if (options_.loss > 0 && chance_(random_) < options_.loss) {
        num_lost_.fetch_add(1, std::memory_order_relaxed);
      } else if (queued_bytes_ + count > options_.queue_bytes) {
        num_overflowed_.fetch_add(1, std::memory_order_relaxed);
      } else {
        packets_.push_back({.due = Due(count),
                            .bytes = {buffer.data(), buffer.data() + count}});
        queued_bytes_ += count;
      }
    }
  }

  Clock::time_point Due(size_t num_bytes) {
    MutexLock lock(mu_);
    return schedule_.Arrival(Clock::now(), num_bytes);
  }

  const Socket from_;
  const int to_;  // the other direction's from_
  const Socket wake_;
  const TunnelOptions options_;
  Mutex mu_;
  LinkSchedule schedule_ ABSL_GUARDED_BY(mu_);
  std::atomic<uint64_t> num_packets_ = 0;
  std::atomic<uint64_t> num_lost_ = 0;
  std::atomic<uint64_t> num_overflowed_ = 0;
  // The thread's own.
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> chance_;
  std::deque<Packet> packets_;
  size_t queued_bytes_ = 0;
  std::jthread thread_;
};

absl::StatusOr<std::unique_ptr<Tunnel>> Tunnel::Start(
    const NetworkNamespace& far, const TunnelOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(CheckOptions(options));
  std::string near_host = absl::StrFormat("198.18.%d.1", options.network);
  std::string far_host = absl::StrFormat("198.18.%d.2", options.network);
  OUTRIDER_ASSIGN_OR_RETURN(Socket near_device, OpenDevice(near_host));
  OUTRIDER_ASSIGN_OR_RETURN(Socket far_device, OpenDeviceIn(far, far_host));
  const int near_fd = near_device.fd();
  const int far_fd = far_device.fd();
  auto out = std::make_unique<Direction>(std::move(near_device), far_fd,
                                         options, /*number=*/0);
  auto back = std::make_unique<Direction>(std::move(far_device), near_fd,
                                          options, /*number=*/1);
  out->Start();
  back->Start();
  return std::unique_ptr<Tunnel>(new Tunnel(std::move(near_host),
                                            std::move(far_host), std::move(out),
                                            std::move(back)));
}

Tunnel::Tunnel(std::string near_host, std::string far_host,
               std::unique_ptr<Direction> out, std::unique_ptr<Direction> back)
    : near_host_(std::move(near_host)),
      far_host_(std::move(far_host)),
      out_(std::move(out)),
      back_(std::move(back)) {}

Tunnel::~Tunnel() {
  // Each writes into the other's device: both stop before either closes.
  out_->Stop();
  back_->Stop();
}

absl::Status Tunnel::SetLink(const LinkOptions& link) {
  OUTRIDER_RETURN_IF_ERROR(CheckOptions({.link = link}));
  out_->SetLink(link);
  back_->SetLink(link);
  return absl::OkStatus();
}

Tunnel::Counters Tunnel::counters() const {
  Counters counters;
  out_->AddTo(counters);
  back_->AddTo(counters);
  return counters;
}

absl::StatusOr<std::chrono::nanoseconds> Calibrate(const Tunnel& tunnel,
                                                   const NetworkNamespace& far,
                                                   const LinkOptions& link) {
  constexpr int kTries = 3;
  std::unique_ptr<EchoServer> echo;
  {
    OUTRIDER_ASSIGN_OR_RETURN(const ScopedNamespace entered,
                              ScopedNamespace::Enter(far));
    OUTRIDER_ASSIGN_OR_RETURN(echo, EchoServer::Start(tunnel.far_host()));
  }
  const std::chrono::nanoseconds nominal = 2 * link.delay;
  const std::chrono::nanoseconds tolerance =
      RoundTripTolerance(nominal) + 2 * link.jitter;
  const int num_echoes = nominal < std::chrono::milliseconds(10) ? 51 : 11;
  std::chrono::nanoseconds achieved = {};
  // A busy moment of the machine is not the network's fault; a busy machine is.
  for (int i = 0; i < kTries; ++i) {
    OUTRIDER_ASSIGN_OR_RETURN(achieved,
                              MeasureRoundTrip(echo->address(), num_echoes));
    const auto error = achieved - nominal;
    if (error <= tolerance && -error <= tolerance) return achieved;
  }
  const auto ms = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  return absl::FailedPreconditionError(absl::StrFormat(
      "a round trip of %g ms took %.2f ms, and may be off by %.2f ms: this "
      "machine is too busy to emulate it",
      ms(nominal), ms(achieved), ms(tolerance)));
}

}  // namespace outrider::bench
