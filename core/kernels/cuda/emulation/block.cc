// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/emulation/block.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/kernels/cuda/emulation/copies.h"
#include "core/kernels/cuda/emulation/failure.h"
#include "core/kernels/cuda/emulation/loads.h"
#include "core/kernels/cuda/emulation/shared_objects.h"
#include "core/kernels/cuda/emulation/stack_switch.h"
#include "core/kernels/cuda/emulation/thread_order.h"

// The address sanitizer looks at the kernels. This file, which runs them, is
// compiled without it (CMakeLists.txt), and tells it which stack is which.
#ifdef OUTRIDER_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define OUTRIDER_TELL_SANITIZER(call) call
#else
#define OUTRIDER_TELL_SANITIZER(call)
#endif

namespace outrider::kernels::cuda::emulation {
namespace {

constexpr int kWarpSize = 32;
constexpr int kMaxThreads = 1024;
// What every device from sm_80 on has for a block: sm_86, sm_89 and sm_120 no
// more, sm_90 227 KiB.
constexpr size_t kMaxSharedBytes = 99 << 10;
constexpr size_t kSharedBytesForAll = 48 << 10;  // without asking for more
constexpr unsigned kMaxGridYz = 65535;
// More than the frames of RunThread and Suspend have.
[[maybe_unused]] constexpr size_t kLastFrames = 4 << 10;

enum class At { kReady, kBarrier, kWarp, kDone };

struct Thread {
  std::unique_ptr<Stack> stack;
  void* context = nullptr;
  void* fake_stack = nullptr;  // the address sanitizer's
  Dim3 index;
  At at = At::kReady;
  Site site;
  Copies copies;
  bool has_awaited = false;  // the previous kernel
};

// Where the lanes of one mask meet. What they have brought stays until all have
// met once more, as meetings take turns with two places: nobody is overtaken.
struct Rendezvous {
  unsigned mask = 0;
  unsigned arrived = 0;
  int kind = 0;
  Site site;
  int place = 0;
  Payload payloads[2][kWarpSize];
};

struct Machine {
  uint64_t seed = 1;
  ThreadOrder order;

  Grid grid;
  Dim3 block;
  const std::function<void()>* body = nullptr;
  std::vector<Thread> threads;  // kept from launch to launch: their stacks
  int num_threads = 0;
  int num_alive = 0;
  int current = 0;
  std::vector<std::deque<Rendezvous>> warps;
  unsigned char* dynamic = nullptr;
  SharedObjects shared_objects;

  // Where RunThreads was left for a thread, and, for the address sanitizer, its
  // stack.
  void* scheduler = nullptr;
  bool is_scheduler_left = false;
  const void* scheduler_bottom = nullptr;
  size_t scheduler_size = 0;
};

Machine& TheMachine() {
  static Machine machine;
  return machine;
}

Thread& Current() { return TheMachine().threads[TheMachine().current]; }

std::string Describe(const Thread& thread) {
  const Dim3& block = TheMachine().block;
  return absl::StrCat(thread.site.file, ":", thread.site.line, ", block (",
                      block.x, ",", block.y, ",", block.z, ") thread (",
                      thread.index.x, ",", thread.index.y, ",", thread.index.z,
                      ")");
}

// Goes on with thread i. `here` and `fake_stack` keep what is left; the latter
// is null where it is left for ever.
void SwitchTo(int i, void** here, [[maybe_unused]] void** fake_stack) {
  Machine& machine = TheMachine();
  machine.current = i;
  const Thread& thread = machine.threads[i];
  OUTRIDER_TELL_SANITIZER(__sanitizer_start_switch_fiber(
      fake_stack, thread.stack->bottom(), Stack::kBytes));
  OutriderSwitchStack(here, thread.context);
}

// The first words of what was switched to.
void Arrive([[maybe_unused]] void* fake_stack) {
  OUTRIDER_TELL_SANITIZER(
      Machine& machine = TheMachine(); const void* bottom; size_t size;
      __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
      if (std::exchange(machine.is_scheduler_left, false)) {
        machine.scheduler_bottom = bottom;
        machine.scheduler_size = size;
      });
}

// The next thread goes on from here: by way of RunThreads it would take two
// switches, which cost more than anything else here.
void Suspend(At at, Site site) {
  Machine& machine = TheMachine();
  Thread& thread = Current();
  thread.at = at;
  thread.site = site;
  void** const fake_stack = at == At::kDone ? nullptr : &thread.fake_stack;
  if (!machine.order.is_empty() && TheFailure().is_empty()) {
    SwitchTo(machine.order.Take(), &thread.context, fake_stack);
  } else {
    OUTRIDER_TELL_SANITIZER(__sanitizer_start_switch_fiber(
        fake_stack, machine.scheduler_bottom, machine.scheduler_size));
    OutriderSwitchStack(&thread.context, machine.scheduler);
  }
  Arrive(thread.fake_stack);
}

void RunThread() {
  Machine& machine = TheMachine();
  Arrive(nullptr);
  (*machine.body)();
  if (!Current().copies.is_empty()) {
    Fail("a thread does not wait for a copy", {"its end", 0});
  }
  if (machine.grid.awaits_previous && !Current().has_awaited) {
    Fail("a thread does not await the previous kernel", {"its end", 0});
  }
  --machine.num_alive;
  Suspend(At::kDone, {"its end", 0});
  std::abort();  // nobody resumes a thread that is done
}

// Returns once no thread can go on.
void RunThreads() {
  Machine& machine = TheMachine();
  [[maybe_unused]] void* fake_stack = nullptr;
  machine.is_scheduler_left = true;
  SwitchTo(machine.order.Take(), &machine.scheduler, &fake_stack);
  OUTRIDER_TELL_SANITIZER(
      __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr));
}

void MakeAllReady() {
  Machine& machine = TheMachine();
  for (int i = 0; i < machine.num_threads; ++i) {
    machine.threads[i].at = At::kReady;
  }
  machine.order.AddAll(machine.num_threads, kWarpSize);
}

void PrepareBlock() {
  Machine& machine = TheMachine();
  machine.shared_objects.BeginBlock();
  Poison(machine.dynamic, machine.grid.shared_bytes);
  const int num_warps = (machine.num_threads + kWarpSize - 1) / kWarpSize;
  if (machine.warps.size() < static_cast<size_t>(num_warps)) {
    machine.warps.resize(num_warps);
  }
  for (int i = 0; i < num_warps; ++i) {
    for (Rendezvous& meeting : machine.warps[i]) meeting.arrived = 0;
  }
  machine.order.Clear();
  machine.num_alive = machine.num_threads;
  const Dim3& size = machine.grid.threads;
  for (int i = 0; i < machine.num_threads; ++i) {
    Thread& thread = machine.threads[i];
    if (thread.stack == nullptr) thread.stack = std::make_unique<Stack>(i);
    thread.context = thread.stack->Start(RunThread);
    const auto place = static_cast<unsigned>(i);
    thread.index = {place % size.x, place / size.x % size.y,
                    place / size.x / size.y};
    thread.copies.Clear();
    thread.has_awaited = false;
  }
  MakeAllReady();
}

// Nobody can go on: all wait at one barrier, or the kernel is wrong.
void OpenBarrier() {
  Machine& machine = TheMachine();
  const auto begin = machine.threads.begin();
  const auto end = begin + machine.num_threads;
  auto first = std::find_if(
      begin, end, [](const Thread& t) { return t.at == At::kBarrier; });
  if (first == end) {
    first = std::find_if(begin, end,
                         [](const Thread& t) { return t.at == At::kWarp; });
  }
  const auto other = std::find_if(begin, end, [&](const Thread& t) {
    return t.at != At::kBarrier || t.site.line != first->site.line ||
           t.site.file != first->site.file;
  });
  if (other != end) {
    TheFailure().Note(absl::StrCat("threads part: one waits at ",
                                   Describe(*first), ", another is at ",
                                   Describe(*other)));
    return;
  }
  MakeAllReady();
}

// What threads have left on their stacks: those of a block that ended well, the
// frames of what never returns; of one that did not, of all that they had
// called.
void ForgetFrames([[maybe_unused]] Machine& machine) {
  OUTRIDER_TELL_SANITIZER(for (int i = 0; i < machine.num_threads; ++i) {
    const Stack& stack = *machine.threads[i].stack;
    char* const from =
        TheFailure().is_empty() ? stack.top() - kLastFrames : stack.bottom();
    __asan_unpoison_memory_region(from, stack.top() - from);
  });
}

void RunBlock() {
  Machine& machine = TheMachine();
  PrepareBlock();
  while (TheFailure().is_empty()) {
    if (machine.order.is_empty()) {
      if (machine.num_alive == 0) break;
      OpenBarrier();
      continue;
    }
    RunThreads();
  }
  ForgetFrames(machine);
}

size_t MostSharedBytes(const Grid& grid) {
  return grid.asks_for_more ? kMaxSharedBytes : kSharedBytesForAll;
}

// Whether a device would take it.
bool IsPossible(const Grid& grid) {
  const auto volume = [](const Dim3& d) { return uint64_t{d.x} * d.y * d.z; };
  return volume(grid.blocks) >= 1 && volume(grid.threads) >= 1 &&
         volume(grid.threads) <= kMaxThreads && grid.blocks.y <= kMaxGridYz &&
         grid.blocks.z <= kMaxGridYz &&
         grid.shared_bytes <= MostSharedBytes(grid);
}

}  // namespace

void SetSeed(uint64_t seed) { TheMachine().seed = seed; }

void RunGrid(const Grid& grid, const std::function<void()>& body) {
  Machine& machine = TheMachine();
  TheFailure().CountLaunch();
  if (!IsPossible(grid)) {
    TheFailure().Note("a launch outside the device's limits");
    return;
  }
  machine.order.Restart(machine.seed);
  machine.grid = grid;
  machine.shared_objects.BeginLaunch(grid.shared_bytes);
  machine.body = &body;
  const Dim3& threads = grid.threads;
  machine.num_threads = static_cast<int>(threads.x * threads.y * threads.z);
  const auto num_threads = static_cast<size_t>(machine.num_threads);
  if (machine.threads.size() < num_threads) machine.threads.resize(num_threads);
  // A heap buffer of its own, so that the address sanitizer guards its end.
  void* dynamic = nullptr;
  if (grid.shared_bytes > 0) {
    OUTRIDER_CHECK(posix_memalign(&dynamic, 16, grid.shared_bytes) == 0)
        << "no memory";
  }
  machine.dynamic = static_cast<unsigned char*>(dynamic);

  const Dim3& blocks = grid.blocks;
  std::vector<unsigned> order(size_t{blocks.x} * blocks.y * blocks.z);
  std::iota(order.begin(), order.end(), 0u);
  machine.order.Shuffle(order);
  for (const unsigned i : order) {
    machine.block = {i % blocks.x, i / blocks.x % blocks.y,
                     i / blocks.x / blocks.y};
    if (TheFailure().is_empty()) RunBlock();
  }
  std::free(std::exchange(dynamic, nullptr));
  machine.dynamic = nullptr;
}

const Dim3& BlockIndex() { return TheMachine().block; }
const Dim3& ThreadIndex() { return Current().index; }
const Dim3& BlockSize() { return TheMachine().grid.threads; }
const Dim3& GridSize() { return TheMachine().grid.blocks; }
int Lane() { return TheMachine().current % kWarpSize; }

void Fail(const char* what, Site site) {
  Current().site = site;
  TheFailure().Note(absl::StrCat(what, " at ", Describe(Current())));
  for (;;) Suspend(At::kDone, site);
}

void Barrier(Site site) { Suspend(At::kBarrier, site); }

void AwaitPreviousKernel() { Current().has_awaited = true; }

const Payload* Exchange(unsigned mask, const void* mine, size_t bytes, int kind,
                        Site site) {
  Machine& machine = TheMachine();
  const int warp = machine.current / kWarpSize;
  const int lane = Lane();
  const int num_lanes =
      std::min(kWarpSize, machine.num_threads - warp * kWarpSize);
  if ((mask >> lane & 1) == 0) Fail("a lane is not in its own mask", site);
  if (num_lanes < kWarpSize && mask >> num_lanes != 0) {
    Fail("a mask names lanes that the block does not have", site);
  }
  std::deque<Rendezvous>& meetings = machine.warps[warp];
  auto place =
      std::find_if(meetings.begin(), meetings.end(),
                   [&](const Rendezvous& r) { return r.mask == mask; });
  if (place == meetings.end()) {
    meetings.emplace_back().mask = mask;
    place = meetings.end() - 1;
  }
  Rendezvous& meeting = *place;
  if (meeting.arrived == 0) {
    meeting.kind = kind;
    meeting.site = site;
  }
  if (meeting.kind != kind || meeting.site.line != site.line) {
    Fail("lanes of a warp meet in different operations", site);
  }
  const Payload* const all = meeting.payloads[meeting.place];
  if (bytes > 0) {
    std::memcpy(meeting.payloads[meeting.place][lane].bytes, mine, bytes);
  }
  meeting.arrived |= 1u << lane;
  if (meeting.arrived != mask) {
    Suspend(At::kWarp, site);
    return all;
  }
  meeting.place = 1 - meeting.place;
  meeting.arrived = 0;
  for (int i = 0; i < num_lanes; ++i) {
    if ((mask >> i & 1) == 0 || i == lane) continue;
    machine.threads[warp * kWarpSize + i].at = At::kReady;
    machine.order.Add(warp * kWarpSize + i);
  }
  return all;
}

void AskForCopy(void* shared, const void* from, size_t bytes) {
  CheckAligned(from, bytes, {"CopyAsync", 0});
  CheckAligned(shared, bytes, {"CopyAsync", 0});
  if (!Current().copies.Ask(shared, from, bytes)) {
    Fail("a thread asks for a copy to where another one is on its way",
         {"CopyAsync", 0});
  }
}
void EndCopyGroup() { Current().copies.EndGroup(); }
void WaitForCopies(int left) { Current().copies.Wait(left); }

void* DynamicShared() { return TheMachine().dynamic; }

void RegisterShared(void* object, size_t bytes) {
  Machine& machine = TheMachine();
  if (machine.shared_objects.Use(object, bytes) >
      MostSharedBytes(machine.grid)) {
    Fail("a launch of more shared memory than a device has, its own included",
         {"an array of its own", 0});
  }
}

}  // namespace outrider::kernels::cuda::emulation
